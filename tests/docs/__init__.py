"""The documents are true: what they name exists, what exists they name, and what they print works."""
