"""The engine by itself, without HTTP."""
