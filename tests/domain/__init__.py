"""The words of the service."""
