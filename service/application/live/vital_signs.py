"""What a worker measures of its database for operators, whether anybody asks for anything or not.

Every worker measures for itself. Of several, the worst state is shown, the connections are added up, and the newest of the times
counts up to which expiries are settled: whichever worker settled them, they are.
"""

from __future__ import annotations

import math
import time
from functools import cache
from typing import TYPE_CHECKING

from prometheus_client import Gauge

from service.application.reads.readiness import require_ready
from service.errors import BestArmError
from service.storage.queries.database_bytes import database_bytes

if TYPE_CHECKING:
    from service.storage.database import Database

EVERY_SECONDS = 5.0
_SIZE_EVERY_SECONDS = 60.0
_POOL_IN_USE = Gauge("bestarm_pool_in_use", "Connections of the pool for reads that are in use.", multiprocess_mode="livesum")
_POOL_SIZE = Gauge("bestarm_pool_size", "Connections that the pool for reads may have.", multiprocess_mode="livesum")
_DATABASE_BYTES = Gauge("bestarm_database_bytes", "Room that the database takes.", multiprocess_mode="livemax")
_SETTLED = Gauge(
    "bestarm_expiries_settled_timestamp_seconds",
    "Whatever fell due before this time has expired or matured.",
    multiprocess_mode="livemax",
)


@cache
def _ready() -> Gauge:
    """Made by who measures it: a process that only imports this would show 0 for ever, and the least of all is shown."""
    about = "1 while the database answers and has a schema that this release may use."
    return Gauge("bestarm_ready", about, multiprocess_mode="livemin")


def expiries_settled(due_by: int) -> None:
    """A sweep has settled all that was due by this time, in microseconds."""
    _SETTLED.set(due_by / 1_000_000)


class VitalSigns:
    """Measured again and again, beside the requests."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._size_at = -math.inf

    async def measure(self) -> None:
        """Set the gauges to what is so now."""
        in_use, size = self._database.pool_use()
        _POOL_IN_USE.set(in_use)
        _POOL_SIZE.set(size)
        try:
            await require_ready(self._database)
        except BestArmError:
            _ready().set(0)
            return
        _ready().set(1)
        if time.monotonic() - self._size_at >= _SIZE_EVERY_SECONDS:
            self._size_at = time.monotonic()
            async with self._database.reading() as connection:
                _DATABASE_BYTES.set(await database_bytes(connection))
