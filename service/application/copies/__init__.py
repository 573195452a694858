"""One experiment as a file: written from one database, read into another."""
