"""The subcommands of `bestarm`, a module each, and the console that they speak through; service/cli.py loads what is typed."""
