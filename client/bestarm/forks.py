"""A child of a fork starts with connections of its own: two processes on one socket would read each other's answers."""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Forkable(Protocol):
    """What holds something that a child must not share."""

    def forked(self) -> None:
        """Begin anew, in the child. No lock of the parent may be waited for: whoever held it is not here."""


_alive: weakref.WeakSet[Forkable] = weakref.WeakSet()


def begin_anew_after_fork(holder: Forkable) -> None:
    """Let it begin anew in every child, as long as it lives."""
    _alive.add(holder)


def _begin_anew() -> None:
    for holder in list(_alive):
        holder.forked()


if hasattr(os, "register_at_fork"):  # there are no forks elsewhere
    os.register_at_fork(after_in_child=_begin_anew)
