"""What tests and benchmarks share has tests, too."""
