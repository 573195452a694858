"""How a group of requests is looked up and written in one transaction, with one module an engine."""
