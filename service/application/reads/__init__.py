"""What is told about an experiment: one module a question."""
