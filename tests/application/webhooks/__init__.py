"""Events become messages, and messages reach endpoints."""
