"""Several workers: started, watched by their heartbeats, replaced when they die or hang, and stopped together."""
