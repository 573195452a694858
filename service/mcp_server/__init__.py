"""The service as tools for a language model's host: the Model Context Protocol, over the HTTP API and with one of its keys."""
