"""Watch: server-sent events read from their bytes, and what to do when the connection ends."""

from __future__ import annotations

import json
from collections.abc import Iterator

from bestarm.errors import Error, MalformedAnswer, Problem, Unavailable
from bestarm.exchange import Call, pause
from bestarm.experiment import Recommendation
from bestarm.requests import get, path_of

CONNECT_SECONDS = 10.0
# The service says something every 15 seconds, if only that nothing is new.
SILENT_SECONDS = 45.0


class Following:
    """What has been seen of one experiment. Each version is seen once, the newest one first after every break."""

    def __init__(self, experiment: str) -> None:
        self._path = path_of(experiment, "stream")
        self._version = 0
        self._failures = 0
        self._rest = b""

    def call(self) -> Call:
        """The request that goes on from where it was."""
        self._rest = b""
        return get(self._path, accept="text/event-stream", last_event_id=str(self._version))

    def fed(self, piece: bytes) -> Iterator[Recommendation]:
        """What a piece of the stream tells that is new."""
        *events, self._rest = (self._rest + piece.replace(b"\r\n", b"\n")).split(b"\n\n")
        for event in events:
            data = [line[5:].strip() for line in event.split(b"\n") if line.startswith(b"data:")]
            if data:
                seen = _read(b"\n".join(data))
                self._failures = 0
                if seen.version != self._version:
                    self._version = seen.version
                    yield seen

    def broken(self, trouble: Error | None) -> float:
        """How long to wait before going on after a break; a refusal that will not pass is raised."""
        if isinstance(trouble, Problem) and not isinstance(trouble, Unavailable):
            raise trouble
        self._failures += 1
        return pause(self._failures, trouble or Error(""))


def _read(data: bytes) -> Recommendation:
    try:
        return Recommendation.read(json.loads(data))
    except (ValueError, TypeError, KeyError) as trouble:
        raise MalformedAnswer(f"This is no recommendation: {data[:80]!r}") from trouble
