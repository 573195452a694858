"""The ledgers that a process keeps in memory, each as good as the version it was last seen at."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from service.engine import engine_metrics
from service.engine.ledger import Ledger
from service.storage.groups import writes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from service.domain import Progress
    from service.storage.groups.statements import Reads

# The least recently used is dropped first; who was used when is noted once there are so many.
_LEDGERS = 1_024
# Draws kept in memory over all ledgers, some 30 MB.
_RECENT_DRAWS = 65_536


class LedgerCache:
    """The ledgers of a process."""

    def __init__(self) -> None:
        self.held: dict[str, Ledger] = {}
        """As this process last saw them, by the key of the experiment."""

    def forget(self, keys: Iterable[str]) -> None:
        """What was decided on these never happened, or is not what is stored."""
        for key in keys:
            self.held.pop(key, None)

    def forget_all(self) -> None:
        """Nothing in memory can be trusted."""
        self.held.clear()

    def trim(self, ledgers: Iterable[Ledger]) -> None:
        """Let these forget their oldest draws. Not while a request waits that relies on them."""
        most = _RECENT_DRAWS // max(1, len(self.held))
        for ledger in ledgers:
            if len(ledger.recent_draws) > most:
                # To half of it: trimming seldom is cheaper than trimming often.
                for draw in list(islice(ledger.recent_draws, len(ledger.recent_draws) - most // 2)):
                    del ledger.recent_draws[draw]

    def known(self, keys: set[str]) -> dict[str, Ledger]:
        """Those of the experiments that this process has seen, as it last saw them."""
        known = {key: self.held[key] for key in keys if key in self.held}
        if len(self.held) == _LEDGERS:
            self.held |= {key: self.held.pop(key) for key in known}
        return known

    async def read(self, source: Reads, keys: set[str]) -> dict[str, Ledger]:
        """Of the experiments that this process has not seen, those that exist."""
        return await self.refreshed(source, await writes.find(source, list(keys)))

    async def refreshed(self, source: Reads, found: dict[str, Progress]) -> dict[str, Ledger]:
        """The ledgers of these experiments, brought up to what is stored."""
        held = {key: self._held_of(key, progress) for key, progress in found.items()}
        behind: dict[int, int] = {}
        for key, progress in found.items():
            ledger = held[key]
            if ledger is None or ledger.version != progress.version:
                engine_metrics.ledger_read(known=ledger is not None)
                behind[progress.experiment.id] = -1 if ledger is None else ledger.version
        moved = await writes.arms_since(source, behind) if behind else {}
        current = {}
        for key, progress in found.items():
            ledger = held[key]
            if ledger is None:
                ledger = Ledger(progress, moved[progress.experiment.id])
            elif progress.experiment.id in moved:
                ledger.refresh(progress, moved[progress.experiment.id])
            current[key] = self._keep(key, ledger)
        return current

    def _held_of(self, key: str, progress: Progress) -> Ledger | None:
        """The ledger of this very experiment: the key may have been another one's, which was deleted."""
        ledger = self.held.get(key)
        return ledger if ledger is not None and ledger.experiment.id == progress.experiment.id else None

    def _keep(self, key: str, ledger: Ledger) -> Ledger:
        self.held.pop(key, None)  # so that it comes last
        self.held[key] = ledger
        if len(self.held) > _LEDGERS:
            del self.held[next(iter(self.held))]
        return ledger
