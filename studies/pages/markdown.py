"""The pieces of Markdown that all sections of the results page are made of."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from service.simulation.kernels.catalogue import contender
from studies.study_command import study_command

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Summary = dict[str, Any]
NONE = "none"
_WIDTH = 130


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def paragraph(text: str, indent: str = "") -> str:
    """The text in lines that fit a screen, those after the first indented."""
    return textwrap.fill(text, _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False) + "\n"


def span(values: Sequence[float], digits: int = 3) -> str:
    """The value, with (low to high)."""
    low, value, high = (f"{number:.{digits}f}" if number < float("inf") else "∞" for number in values)
    return f"{value} ({low} to {high})"


def title_of(policy: str) -> str:
    """How tables call a policy."""
    return contender(policy).title


def titles_of(policies: Iterable[str]) -> str:
    """Several of them in a sentence."""
    return ", ".join(dict.fromkeys(title_of(policy) for policy in policies)) or NONE


def percent(level: str) -> str:
    """A level of error as a percentage."""
    return f"{100 * float(level):g}%"


def command_of(summary: Summary) -> str:
    """The command that makes these results today, whatever it was called when they were made."""
    settings = summary["settings"]
    return study_command(settings["study"], settings["runs"], settings["seed"])


def settings_line(summary: Summary) -> str:
    """The command behind a section and how many runs it has."""
    settings, played = summary["settings"], summary["played"]
    runs = f"{settings['runs']:,} runs"
    if played["fewest"] < settings["runs"]:
        runs = f"**unfinished**: {played['fewest']:,} to {played['most']:,} of {runs} a cell; the same command goes on"
    return f"`{command_of(summary)}` ({runs}; seed {settings['seed']}).\n"
