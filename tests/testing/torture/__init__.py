"""What is used to break the service must not be broken itself."""
