"""What is exported, and in which words."""
