"""The pictures, read as XML."""
