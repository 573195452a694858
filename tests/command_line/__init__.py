"""The subcommands, as typed."""
