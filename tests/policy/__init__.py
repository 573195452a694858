"""The policies: pure functions of the evidence."""
