"""Past data from files: read line by line, checked whole, and told as observations."""
