"""What tests and benchmarks share: a PostgreSQL of their own, the service as real processes or in this one, histories."""
