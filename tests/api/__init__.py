"""The contract over HTTP, both ways in where there are two."""
