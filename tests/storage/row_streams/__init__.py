"""What exports read of a database that goes on changing."""
