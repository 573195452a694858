"""Which arm next: pure functions of the evidence, after "Rate-optimal Design for Anytime Best Arm Identification"."""
