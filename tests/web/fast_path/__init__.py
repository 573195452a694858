"""Asks and tells from their bytes."""
