"""The `bestarm` command, and `python -m service`.

What it needs is loaded when it runs: each process that it starts loads this file, too, and should load no commands with it.
"""

from __future__ import annotations


def main() -> None:
    """Run the command that was typed."""
    from service.cli import app  # noqa: PLC0415 - see above

    app()


if __name__ == "__main__":
    main()
