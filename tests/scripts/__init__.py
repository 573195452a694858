"""What the scripts promise."""
