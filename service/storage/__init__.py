"""Where experiments are kept: the only package that knows SQL. SQLite (embedded) and PostgreSQL, one schema."""
