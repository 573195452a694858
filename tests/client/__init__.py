"""The client against the real service, blocking and asynchronous, with a network between them that fails."""
