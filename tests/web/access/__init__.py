"""Who may do what, route by route."""
