"""The dashboard in a real browser, and what many viewers cost."""
