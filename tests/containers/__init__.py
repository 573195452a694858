"""The container files, built and brought up for real (`make test-compose`)."""
