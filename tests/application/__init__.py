"""The use cases, below HTTP."""
