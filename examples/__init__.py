"""Programs that use the service as a product would; each runs in the tests."""
