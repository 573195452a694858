"""Reads, on both databases."""
