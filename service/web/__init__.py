"""The HTTP edge: routes, schemas, errors. Nothing here decides anything about an experiment."""
