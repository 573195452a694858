"""What routes share."""
