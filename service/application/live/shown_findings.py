"""What viewers were shown and nobody has kept yet: left here by looks, which never write, for the worker's own look."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from service.domain import ExperimentVersion
    from service.domain.findings import Finding


class ShownFindings:
    """By the experiment's key: the findings, and the version at which they were shown."""

    def __init__(self) -> None:
        self._shown: dict[str, tuple[ExperimentVersion, list[Finding]]] = {}

    def note(self, key: str, version: ExperimentVersion, findings: list[Finding]) -> None:
        """Remember what somebody is about to see; what was shown before stands."""
        if findings:
            self._shown.setdefault(key, (version, findings))

    def take(self) -> dict[str, tuple[ExperimentVersion, list[Finding]]]:
        """All of it, to be kept."""
        taken, self._shown = self._shown, {}
        return taken
