"""Which columns of a file hold what an import takes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from service.errors import InvalidValue

FIELDS = ("arm", "reward", "id", "time")
_REQUIRED = ("arm", "reward")
_LONGEST_SHOWN = 40


@dataclass(frozen=True, slots=True)
class FileColumns:
    """The names that a file has for the fields, where they differ; may it have others?"""

    names: Mapping[str, str] = field(default_factory=dict)
    """By field: arm, reward, id, time."""
    others_ignored: bool = False

    def name_of(self, wanted: str) -> str:
        """What the file calls a field."""
        return self.names.get(wanted, wanted)

    def found_in(self, columns: Sequence[str]) -> dict[str, int]:
        """The place of each field among the columns of a file; refused if one is missing, there twice, or not known."""
        missing = [self.name_of(one) for one in _REQUIRED if self.name_of(one) not in columns]
        if missing:
            raise InvalidValue("/file", f"There is no column {missing[0]!r}. The columns are {_listed(columns)}.")
        known = {self.name_of(one): one for one in FIELDS}
        twice = [name for name in known if columns.count(name) > 1]
        if twice:
            raise InvalidValue("/file", f"The column {twice[0]!r} is there twice.")
        absent = [name for one, name in self.names.items() if name not in columns]
        if absent:
            raise InvalidValue("/file", f"There is no column {absent[0]!r}. The columns are {_listed(columns)}.")
        self.require_known([name for name in columns if name not in known])
        return {known[name]: place for place, name in enumerate(columns) if name in known}

    def require_known(self, others: Collection[str]) -> None:
        """Refuse columns that no field stands for, unless they are to be ignored."""
        if others and not self.others_ignored:
            detail = f"An import takes {', '.join(FIELDS)}, not {_listed(others)}. --ignore-other-columns leaves them out."
            raise InvalidValue("/file", detail)


def _listed(names: Collection[str]) -> str:
    """The first ten names, cut where they are long, and how many more there are."""
    shown = [repr(name if len(name) <= _LONGEST_SHOWN else f"{name[:_LONGEST_SHOWN]}…") for name in list(names)[:10]]
    return ", ".join(shown) + (f" and {len(names) - len(shown)} more" if len(names) > len(shown) else "")
