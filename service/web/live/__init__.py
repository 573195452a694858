"""What viewers watch: the recommendation, its pictures and its stream, with the version they show."""
