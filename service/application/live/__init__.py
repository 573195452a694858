"""What many viewers share: the versions of experiments, and what was computed from one of them."""
