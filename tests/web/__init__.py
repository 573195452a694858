"""The HTTP contract, over real HTTP, on both databases."""
