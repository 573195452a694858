"""Rows of exports."""
