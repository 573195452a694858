"""The tests mirror service/."""
