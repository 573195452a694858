"""The command that makes a study's results, as one would type it in a checkout."""

from __future__ import annotations


def study_command(study: str, runs: int, seed: int) -> str:
    """The command with all that the results depend on."""
    return f"python -m studies {study} --runs {runs} --seed {seed}"
