"""The use cases: asks, tells, looks and changes; between the web and the policies, the statistics and the database."""
