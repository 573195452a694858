"""What requests pass on their way to a route."""
