"""How sure it is: anytime-valid intervals, separation and error estimates from sufficient statistics."""
