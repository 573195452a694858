"""Containers for real: a Docker engine that the tests start themselves, and stand-ins for the images that it cannot fetch."""
