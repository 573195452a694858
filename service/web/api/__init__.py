"""The HTTP contract: routes, what goes in and out, and how it is checked."""
