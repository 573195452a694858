"""`python -m service` is the `bestarm` command."""

from service.cli import app

app()
