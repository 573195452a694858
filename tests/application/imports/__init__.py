"""Files of past data."""
