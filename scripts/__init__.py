"""Programs that the targets of make run, as `python -m scripts.NAME` or by their path."""
