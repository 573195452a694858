"""A FastAPI shop that tests the button of its checkout."""
