"""What is told about an experiment."""
