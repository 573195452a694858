"""What changes an experiment: one module a use case."""
