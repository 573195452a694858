"""What fuzzers go by must be right itself."""
