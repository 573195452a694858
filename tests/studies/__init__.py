"""Tests that mirror the modules of studies."""
