"""What is stored, on both databases."""
