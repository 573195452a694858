"""Who sends a request, and what they may do: the one thing that every change must show before it is queued."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias, get_args

import msgspec

from service.domain.limits import LONGEST_KEY, MOST_PUBLIC_ITEMS
from service.errors import ExperimentNotFound, Forbidden

if TYPE_CHECKING:
    from service.domain.experiment import Json

Scope: TypeAlias = Literal["read", "assign", "reward", "manage", "admin"]
SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)
ALL_SCOPES: Final[frozenset[Scope]] = frozenset(SCOPES)
PUBLIC_SCOPES: Final[frozenset[Scope]] = frozenset({"assign", "reward"})
"""What a key may do that everybody can read in a page: and that only by unit."""


def granted(scopes: frozenset[Scope]) -> frozenset[Scope]:
    """What these scopes allow: whoever administers may do everything."""
    return ALL_SCOPES if "admin" in scopes else scopes


class Guarded(Protocol):
    """Something that not everybody may do."""

    @property
    def scope(self) -> Scope:
        """What a caller needs for it."""
        ...

    @property
    def by_unit(self) -> bool:
        """It names units and nothing else, which is all that a public key may do."""
        ...

    @property
    def weight(self) -> int:
        """How many single requests it stands for."""
        ...


class Caller(msgspec.Struct, frozen=True, gc=False):
    """A key as the service knows it, the service itself, or anybody where there are no keys."""

    scopes: frozenset[Scope]
    id: str | None = None
    label: str | None = None
    experiments: tuple[str, ...] | None = None
    """The only ones that it sees: keys, or patterns with `*`. None means all."""
    origins: tuple[str, ...] | None = None
    """Of a public key: the pages that may use it."""
    expires_at: int | None = None
    session: bytes | None = None
    """The digest of the session by which it came, if it came by one."""

    @property
    def actor(self) -> dict[str, Json] | None:
        """How the history names it; None where it is nobody in particular."""
        return None if self.id is None else {"id": self.id, "label": self.label}

    def sees(self, experiment: str) -> bool:
        """Is this one of its experiments? What is too long for a key is nobody's, and not worth the look."""
        return self.experiments is None or matches_any(self.experiments, experiment)

    def require(self, scope: Scope, experiment: str | None = None) -> None:
        """Refuse what it may not do, and show it nothing that it may not see."""
        if scope not in self.scopes:
            raise Forbidden(f"This needs a key with the scope `{scope}`.")
        if experiment is not None and self.experiments is not None and not self.sees(experiment):
            raise ExperimentNotFound(experiment, "experiment")

    def admit(self, experiment: str, wanted: Guarded) -> None:
        """Refuse a change of an experiment that it may not make."""
        self.require(wanted.scope, experiment)
        if self.origins is None:
            return
        if not wanted.by_unit:
            raise Forbidden("A public key asks and rewards by `unit` alone.")
        if wanted.weight > MOST_PUBLIC_ITEMS:
            raise Forbidden(f"A public key sends at most {MOST_PUBLIC_ITEMS} items at once.")


class Access(msgspec.Struct, frozen=True, gc=False):
    """An experiment by its key, and who wants to get at it."""

    caller: Caller
    key: str


SERVICE: Final = Caller(ALL_SCOPES)
"""The service itself: expiry, findings, rules that conclude. Commands of the operator, too."""
ANYBODY: Final = Caller(ALL_SCOPES)
"""Whoever reaches a service without keys."""


def matches_any(patterns: tuple[str, ...], experiment: str) -> bool:
    """Is this key one of these, or of the form of one: `*` stands for any characters?"""
    return len(experiment) <= LONGEST_KEY and _any_of(patterns).fullmatch(experiment) is not None


@lru_cache(maxsize=4096)
def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(_expression, patterns)))


def _expression(pattern: str) -> str:
    """A pattern as a regular expression that takes linear time: the first place where a part fits is as good as any later one."""
    first, *others = map(re.escape, pattern.split("*"))
    between = "".join(f"(?>.*?{part})" for part in others[:-1])
    return first + (f"{between}.*{others[-1]}" if others else "")


def by_service(key: str) -> Access:
    """The service's own access to an experiment."""
    return Access(SERVICE, key)
