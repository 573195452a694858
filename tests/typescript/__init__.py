"""The types of the API for TypeScript, and what is written with them."""
