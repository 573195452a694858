"""What every request passes on its way to FastAPI. The fast path goes past it (docs/decisions/0006)."""
