"""Offline simulation: the policies of the service against the paper's baselines."""
