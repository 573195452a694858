"""Real parts for the tests: a PostgreSQL of their own, and the service as real processes."""
