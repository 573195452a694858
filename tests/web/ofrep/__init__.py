"""Tests of the flags' own routes."""
