"""Tests of experiments as files."""
