"""bestarm: find the best variant with live traffic."""

__version__ = "0.1.0"
