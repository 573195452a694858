"""The supervisor: the process above several workers. It serves nothing itself, so whatever happens to one, the others go on.

A dead worker is noticed by the system at once, a hanging one by its silence (`service/supervision/worker_process.py`). Its place
is taken by the spare, which has loaded everything already and waits: so it is empty for a moment only. One that dies again and
again is replaced after growing pauses. A hangup (SIGHUP) replaces one worker after the other, each when its successor serves.
Nothing here waits for a single worker: every turn looks at all of them.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, TypeAlias

import structlog
from uvicorn.config import STARTUP_FAILURE

from service.supervision.backoff import Backoff

if TYPE_CHECKING:
    from service.supervision.worker import Worker

log = structlog.get_logger(__name__)
NewWorker: TypeAlias = "Callable[[], Worker]"
_TURN_SECONDS = 0.5
# No turn counts for more: where this process itself was stopped for a while, nobody else is to blame for the silence.
_MOST_COUNTED_SECONDS = 2 * _TURN_SECONDS


@dataclass(slots=True)
class _Place:
    """What one worker at a time serves from."""

    worker: Worker | None = None
    successor: Worker | None = None
    """Takes over when it serves."""
    free_until: float = 0.0
    """When the next one is started, if there is none."""
    backoff: Backoff = field(default_factory=Backoff)


class Supervisor:
    """Keeps so many workers serving until it is asked to stop."""

    def __init__(self, new_worker: NewWorker, workers: int, before_stop: Callable[[], None] = lambda: None) -> None:
        self._new_worker, self._before_stop = new_worker, before_stop
        self._places = [_Place() for _ in range(workers)]
        self._spare = _Place()
        self._retired: list[Worker] = []
        """Workers that were asked to stop and have not ended yet."""
        self._to_renew: list[_Place] = []
        self._has_served, self._is_stopping, self._exit_code = False, False, 0

    def run(self) -> int:
        """Serve until SIGTERM or SIGINT, or until it is clear that no worker can start; the exit code."""
        turned_at = time.monotonic()
        with _heard_signals() as signals:
            while not self._is_stopping or self._all():
                self._fill_places()
                said = [one for worker in self._all() for one in (worker.sentinel, worker.beats)]
                wait([signals, *said], _TURN_SECONDS)
                now = time.monotonic()
                elapsed, turned_at = min(now - turned_at, _MOST_COUNTED_SECONDS), now
                for number in _numbers(signals):
                    self._obey(number)
                for worker in self._all():
                    worker.listen(elapsed)
                    if worker.is_overdue:
                        _end_hanging(worker)
                self._bury()
                self._renew()
        return self._exit_code

    def _all(self) -> list[Worker]:
        held = [one for place in (*self._places, self._spare) for one in (place.worker, place.successor) if one is not None]
        return held + self._retired

    def _obey(self, number: int) -> None:
        log.info("signal", signal=signal.Signals(number).name)
        if number == signal.SIGHUP:
            self._discard_spare()  # what it has loaded may be old
            self._to_renew = list(self._places)
        elif number == signal.SIGINT and self._is_stopping:
            for worker in self._all():  # whoever presses Ctrl-C twice does not want to wait
                worker.kill()
        else:
            self._stop()

    def _stop(self) -> None:
        self._before_stop()
        self._is_stopping, self._to_renew = True, []
        held = [one for place in (*self._places, self._spare) for one in (place.worker, place.successor) if one is not None]
        # What does not serve has nothing to finish, and holds the port: who connects once the others have let go of it would wait
        # for nobody, and lose a request that no proxy may send again. So it goes first.
        for worker in held:
            worker.listen(0.0)  # it may have begun to serve a moment ago
            if worker.stage != "serving":
                worker.end()
        for worker in held:
            self._retire(worker)
        for place in (*self._places, self._spare):
            place.worker = place.successor = None

    def _retire(self, worker: Worker) -> None:
        worker.stop()
        self._retired.append(worker)

    def _fill_places(self) -> None:
        """Start what is due; the spare last, when all others serve."""
        if self._is_stopping:
            return
        now = time.monotonic()
        for place in self._places:
            if place.worker is None and now >= place.free_until:
                place.worker = self._next_worker(place)
                if place.worker is not None:
                    place.worker.serve()
                elif not self._has_served and not self._all():
                    self._give_up()
                    return
        if self._spare.worker is None and now >= self._spare.free_until and self._all_serve():
            self._spare.worker = self._started(self._spare)

    def _all_serve(self) -> bool:
        return all(place.worker is not None and place.worker.stage == "serving" for place in self._places)

    def _next_worker(self, place: _Place) -> Worker | None:
        """The spare, if it is ready."""
        spare = self._spare.worker
        if spare is None or spare.stage != "standby":
            return self._started(place)
        self._spare.worker, self._spare.backoff = None, Backoff()  # its successor has failed nobody yet
        return spare

    def _started(self, place: _Place) -> Worker | None:
        """A new one; None where the system has no room for a process or its pipes: then the place waits for its next turn."""
        try:
            return self._new_worker()
        except OSError as refused:
            pause = place.backoff.seconds_after(0.0)
            place.free_until = time.monotonic() + pause
            log.error("worker cannot start", reason=str(refused), tried_again_in_seconds=pause)  # noqa: TRY400 - no defect of ours
            return None

    def _discard_spare(self) -> None:
        if self._spare.worker is not None:
            self._retire(self._spare.worker)
            self._spare.worker = None

    def _bury(self) -> None:
        """Take the dead out of their places."""
        self._retired = [worker for worker in self._retired if not worker.is_dead()]
        for place in (*self._places, self._spare):
            if place.successor is not None and place.successor.is_dead():
                log.error("new worker died, the old one stays", pid=place.successor.pid, exit_code=place.successor.exit_code)
                place.successor, self._to_renew = None, []
            if place.worker is not None:
                self._has_served = self._has_served or place.worker.stage == "serving"
                if place.worker.is_dead():
                    self._leave_free(place, place.worker)

    def _leave_free(self, place: _Place, dead: Worker) -> None:
        pause = place.backoff.seconds_after(dead.served_seconds)
        place.worker, place.free_until = None, time.monotonic() + pause
        about = {"pid": dead.pid, "stage": dead.stage, "exit_code": dead.exit_code}
        log.warning("worker died", **about, served_seconds=round(dead.served_seconds, 1), replaced_in_seconds=pause)
        if place.successor is not None:
            place.worker, place.successor = place.successor, None
            self._to_renew.remove(place)
        if not self._has_served and (dead.exit_code or 0) > 0:
            self._give_up()  # this one gave up by itself: so would the next

    def _give_up(self) -> None:
        """None has ever served."""
        log.error("workers cannot start")
        self._exit_code = STARTUP_FAILURE
        self._stop()

    def _renew(self) -> None:
        """Replace one worker after the other."""
        if not self._to_renew:
            return
        place = self._to_renew[0]
        if place.successor is None:
            place.successor = self._started(place)
            if place.successor is None:
                self._to_renew = []  # those that serve stay, as where a new one dies
            else:
                place.successor.serve()
        elif place.successor.stage == "serving":
            if place.worker is not None:
                self._retire(place.worker)
            place.worker, place.successor = place.successor, None
            self._to_renew.pop(0)


def _end_hanging(worker: Worker) -> None:
    """Say where it hangs, and end it; what it had acknowledged is stored, and its callers try again."""
    stack = worker.stack() if worker.stage == "serving" else ""
    log.error("worker hangs", pid=worker.pid, stage=worker.stage, silent_seconds=round(worker.silent_seconds, 1), stack=stack)
    worker.kill()


@contextmanager
def _heard_signals() -> Iterator[int]:
    """A pipe with the numbers of the signals that come; those that were there before are back at the end."""
    read, write = os.pipe()
    for end in (read, write):
        os.set_blocking(end, False)

    def hear(number: int, _frame: object) -> None:
        with suppress(BlockingIOError):
            os.write(write, bytes([number]))

    before = {number: signal.signal(number, hear) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    try:
        yield read
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(read)
        os.close(write)


def _numbers(signals: int) -> Sequence[int]:
    try:
        return os.read(signals, 256)
    except BlockingIOError:
        return ()
