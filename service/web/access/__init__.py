"""Who may do what: the key that comes with a request, and what each route needs."""
