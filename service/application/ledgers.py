"""The ledgers that a process keeps in memory, each as good as the version it was last seen at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.application import metrics
from service.application.ledger import Ledger
from service.storage import journal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from service.domain import Progress
    from service.storage.groups import Reads

# The least recently used is dropped first; who was used when is noted once there are so many.
_LEDGERS = 1_024
# Draws kept in memory over all ledgers, some 30 MB.
_RECENT_DRAWS = 65_536


class Ledgers:
    """By the experiment's key."""

    def __init__(self) -> None:
        self.kept: dict[str, Ledger] = {}
        """As this process last saw them."""

    def forget(self, keys: Iterable[str]) -> None:
        """What was decided on these never happened, or is not what is stored."""
        for key in keys:
            self.kept.pop(key, None)

    def forget_all(self) -> None:
        """Nothing in memory can be trusted."""
        self.kept.clear()

    def trim(self, ledgers: Iterable[Ledger]) -> None:
        """Let these forget their oldest draws. Not while a request waits that relies on them."""
        most = _RECENT_DRAWS // max(1, len(self.kept))
        for ledger in ledgers:
            if len(ledger.recent) > most:
                ledger.remember(most)

    def known(self, keys: set[str]) -> dict[str, Ledger]:
        """Those of the experiments that this process has seen, as it last saw them."""
        known = {key: self.kept[key] for key in keys if key in self.kept}
        if len(self.kept) == _LEDGERS:
            self.kept |= {key: self.kept.pop(key) for key in known}
        return known

    async def read(self, source: Reads, keys: set[str]) -> dict[str, Ledger]:
        """The others, those of them that exist."""
        return await self.refreshed(source, await journal.find(source, list(keys)))

    async def refreshed(self, source: Reads, found: dict[str, Progress]) -> dict[str, Ledger]:
        """The ledgers of these experiments, brought up to what is stored."""
        held = {key: self.kept.get(key) for key in found}
        behind: dict[int, int] = {}
        for key, progress in found.items():
            ledger = held[key]
            if ledger is None or ledger.version != progress.version:
                metrics.ledger_read(known=ledger is not None)
                behind[progress.experiment.id] = -1 if ledger is None else ledger.version
        moved = await journal.arms_since(source, behind) if behind else {}
        current = {}
        for key, progress in found.items():
            ledger = held[key]
            if ledger is None:
                ledger = Ledger(progress, moved[progress.experiment.id])
            elif progress.experiment.id in moved:
                ledger.refresh(progress, moved[progress.experiment.id])
            current[key] = self._keep(key, ledger)
        return current

    def _keep(self, key: str, ledger: Ledger) -> Ledger:
        self.kept.pop(key, None)  # so that it comes last
        self.kept[key] = ledger
        if len(self.kept) > _LEDGERS:
            del self.kept[next(iter(self.kept))]
        return ledger
