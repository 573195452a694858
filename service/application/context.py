"""What every use case needs: the database to read from, the writer to change experiments through, and what is shared by looks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from service.application.live.known_callers import KnownCallers
from service.application.live.lanes import Lanes
from service.application.live.open_streams import OpenStreams
from service.application.live.reader import WritingReader
from service.application.live.shown_findings import ShownFindings
from service.application.live.turns import Turns
from service.application.live.version_cache import VersionCache
from service.application.live.versions import Versions
from service.application.live.watcher import Watcher
from service.application.webhooks.known_webhooks import KnownWebhooks
from service.application.webhooks.sender import Sender
from service.domain.limits import MOST_FLAG_STREAMS, MOST_OBSERVATION_STREAMS, MOST_OBSERVATION_STREAMS_OF_KEY, MOST_WAITING_TESTS

if TYPE_CHECKING:
    from service.engine.writer import Writer
    from service.storage.database import Database


def _observation_streams() -> OpenStreams:
    return OpenStreams(MOST_OBSERVATION_STREAMS, MOST_OBSERVATION_STREAMS_OF_KEY, "streams of observations")


def _flag_streams() -> OpenStreams:
    return OpenStreams(MOST_FLAG_STREAMS, MOST_FLAG_STREAMS, "streams of flags")


@dataclass(frozen=True, slots=True)
class Context(WritingReader):
    """One per process, made when the application starts."""

    versions: Versions
    watcher: Watcher
    lanes: Lanes
    callers: KnownCallers
    webhooks: KnownWebhooks
    sender: Sender
    """Sends messages to webhooks."""
    streams: OpenStreams = field(default_factory=OpenStreams)
    observation_streams: OpenStreams = field(default_factory=_observation_streams)
    flag_streams: OpenStreams = field(default_factory=_flag_streams)
    shown: ShownFindings = field(default_factory=ShownFindings)
    webhook_tests: Turns = field(default_factory=lambda: Turns(MOST_WAITING_TESTS))
    """Held while a test of a webhook is on its way: how long that takes is the endpoint's choice."""

    @classmethod
    def over(
        cls,
        database: Database,
        writer: Writer,
        callers: KnownCallers | None = None,
        sender: Sender | None = None,
    ) -> Context:
        """A context with a memory of its own."""
        versions, callers = Versions(database), callers or KnownCallers(database, None)
        return cls(
            database,
            VersionCache(),
            writer,
            versions,
            Watcher(versions),
            Lanes.over(database, callers),
            callers,
            KnownWebhooks(database),
            sender or Sender(),
        )
