"""Webhooks: events of the history become messages, and messages reach endpoints, in order and at least once."""
