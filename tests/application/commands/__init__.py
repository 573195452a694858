"""What changes experiments, below HTTP."""
