"""Measurements and studies, each run as `python -m benchmarks.NAME`; the targets of make/ list them."""
