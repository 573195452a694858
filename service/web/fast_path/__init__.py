"""Asks and tells, recognised from their bytes and answered by the connection (docs/decisions/0006)."""
