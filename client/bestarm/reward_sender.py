"""Sends queued rewards, in a thread of its own for both clients: at the end of a program no event loop is left to send them."""

from __future__ import annotations

import atexit
import logging
import threading
from collections.abc import Iterable

from bestarm.blocking import BlockingWire
from bestarm.counts import Counter
from bestarm.deadline import Deadline
from bestarm.errors import DeadlineExceeded, Error, MalformedAnswer, Unauthorized, Unavailable, Unreachable
from bestarm.forks import begin_anew_after_fork
from bestarm.holds import Holds
from bestarm.operations.core import Seldom
from bestarm.operations.telling import sent_rewards
from bestarm.reward_queue import SEGMENT, Part, RewardQueue, Segment
from bestarm.spool import Spool, Told

_REQUEST_SECONDS = 10.0
_ADOPT_SECONDS = 30.0
# Enough to suspect that the others would fail as well; a service that is overloaded is not asked for all of them at once.
_MOST_FAILURES = 3
# The key is not known, or was used too often: so it is for every experiment.
_OF_THE_KEY = {401, 429}
# What may pass: an outage, and a key that somebody is about to replace.
_LATER = (Unreachable, DeadlineExceeded, MalformedAnswer, Unavailable, Unauthorized)
# The service is called by a name or a path that it does not know: whoever set up what stands between will mend it.
_MISDIRECTED = {"host_not_allowed", "invalid_host", "not_found", "method_not_allowed"}
_log = logging.getLogger("bestarm")


class RewardSender:
    """A queue and the thread that empties it, which starts with the first reward."""

    def __init__(self, wire: BlockingWire, counter: Counter, *, size: int, every_seconds: float, spool: Spool | None) -> None:
        self._wire = wire
        self._counter = counter
        self._size = size
        self._every = every_seconds
        self._spool = spool
        self._outage_log = Seldom()
        self._begin()
        begin_anew_after_fork(self)
        if spool is not None:
            self._start()

    def _begin(self) -> None:
        self._changed = threading.Condition()
        self._sending = threading.Lock()
        self._queue = RewardQueue(self._size, self._spool)
        self._thread: threading.Thread | None = None
        self._is_urgent = self._is_closed = self._is_over = self._is_adopting = False
        self._flushes = 0
        self._arrived = 0
        self._holds = Holds()
        self._adopted = Deadline(0)

    def forked(self) -> None:
        """Leave what waits to the parent, which sends it; this process has a queue of its own."""
        self._queue.release()
        self._begin()

    def __len__(self) -> int:
        return len(self._queue)

    def put(self, told: Told) -> bool:
        """Queue a reward; False when there is no room, and it is counted as lost."""
        with self._changed:
            is_held = told.experiment in self._holds
            is_taken = not self._is_closed and self._has_room(told.experiment) and self._queue.put(told, is_held=is_held)
            if is_taken:
                self._start()
                self._arrived += not is_held
                if not is_held and (self._arrived == 1 or self._arrived % SEGMENT == 0):
                    self._changed.notify_all()
        if not is_taken:
            self._counter.add("rewards_overflowed")
        return is_taken

    def _has_room(self, experiment: str) -> bool:
        """Leave half of the queue to the others where one experiment alone fails."""
        return not self._holds.is_alone(experiment) or self._queue.count(experiment) < self._size // 2

    def _start(self) -> None:
        if self._thread is not None:
            return
        atexit.unregister(self.close)
        atexit.register(self.close, _REQUEST_SECONDS)
        thread = threading.Thread(target=self._run, name="bestarm-rewards", daemon=True)
        self._is_adopting = self._spool is not None  # with that it begins
        try:
            thread.start()
        except RuntimeError as trouble:  # no more threads; the next reward tries again, and so does the end of the program
            self._is_adopting = False
            _log.warning("Rewards wait, %d of them: %s", len(self._queue), trouble)
        else:
            self._thread = thread

    def flush(self, timeout: float) -> bool:
        """Send what waits now, and what others are known to have left; True when all of it is settled in time."""
        with self._changed:
            self._is_urgent = True
            self._flushes += 1
            self._changed.notify_all()
            try:
                return self._changed.wait_for(lambda: not self._queue and not self._is_adopting, timeout)
            finally:
                self._flushes -= 1

    def close(self, timeout: float) -> bool:
        """Send what waits, in this thread if need be, and stop; True when nothing is left but what the spool keeps."""
        deadline = Deadline.after(timeout)
        with self._changed:
            self._is_closed = True
            self._holds.end_waiting()
            self._changed.notify_all()
        atexit.unregister(self.close)
        if self._thread is not None:
            self._thread.join(timeout)
        while self._queue and deadline.left() > 0:
            self._round(deadline)
            with self._changed:
                seconds = self._holds.seconds_left(self._queue.experiments()) or 0.0
                self._changed.wait_for(lambda: not self._queue, min(seconds, max(deadline.left(), 0)))
        with self._changed:
            left = len(self._queue)
            self._is_over = True
            self._queue.release()
        if left:
            _log.warning("%d rewards were not sent%s.", left, "; the spool has them" if self._spool else " and are lost")
        self._wire.close()
        return not left

    def _run(self) -> None:
        while True:
            try:
                if not self._waited():
                    return
                self._round()
            except Exception:  # noqa: BLE001 - a thread that ended would leave every later reward in the queue
                _log.exception("Rewards wait, %d of them.", len(self._queue))
                with self._changed:
                    self._holds.fail_all(Unreachable(""))

    def _waited(self) -> bool:
        """Wait until there is something that may be sent, and a little for more; False when it is time to stop."""
        while self._has_to_wait():
            pass
        with self._changed:
            if not self._flushes:
                self._changed.wait_for(lambda: self._is_urgent or self._is_closed or self._arrived >= SEGMENT, self._every)
            if self._is_urgent:
                self._holds.end_waiting()
            self._is_urgent = False
            return not self._is_closed

    def _has_to_wait(self) -> bool:
        """Take over what others left, now and then; then, where nothing may be sent, wait for a change, and say so."""
        if self._spool is not None and self._adopted.left() <= 0:
            self._adopted = Deadline.after(_ADOPT_SECONDS)
            with self._changed:
                self._is_adopting = True
            try:
                self._adopt(self._spool)
            finally:
                with self._changed:
                    self._is_adopting = False
                    self._changed.notify_all()
        with self._changed:
            seconds = self._holds.seconds_left(self._queue.experiments())
            if self._is_closed or self._is_urgent or seconds == 0:
                return False
            if self._spool is not None:
                until_adoption = max(self._adopted.left(), 0.001)
                seconds = until_adoption if seconds is None else min(seconds, until_adoption)
            self._changed.wait(seconds)
            return True

    def _adopt(self, spool: Spool) -> None:
        """Take over what processes that died have left. Their files are read without the lock, which every reward needs."""
        for file in spool.left_behind():
            try:
                rewards = list(file.rewards())
            except OSError as trouble:
                _log.warning("Rewards that were left behind cannot be read: %s", trouble)
                file.release()
                continue
            if not rewards:
                file.remove()
                continue
            with self._changed:
                is_taken = not self._is_over and self._queue.adopt(file, rewards)
            if not is_taken:
                file.release()
                return

    def _round(self, within: Deadline | None = None) -> None:
        """Send what may be sent now, an experiment after the other. One that fails waits by itself."""
        with self._sending:
            with self._changed:
                self._arrived = 0
                waiting = self._queue.by_experiment()
                due = self._holds.due(waiting)
            failures = 0
            for experiment in due:
                try:
                    for part in waiting[experiment]:
                        self._send(experiment, part, within or Deadline.after(_REQUEST_SECONDS))
                except Error as trouble:  # that may pass, see `_told`
                    failures += 1
                    if self._has_everyone_wait(experiment, trouble):
                        _force(part.segment for parts in waiting.values() for part in parts)
                        return
                    _force(part.segment for part in waiting[experiment])
                    if failures == _MOST_FAILURES:
                        return

    def _has_everyone_wait(self, experiment: str, trouble: Error) -> bool:
        """Let the rewards wait that could not be sent; whether all the others have to as well.

        The experiment is known to have failed in either case: others are tried first the next time.
        """
        is_everyone_s = isinstance(trouble, Unreachable) or trouble.status in _OF_THE_KEY or trouble.code in _MISDIRECTED
        with self._changed:
            self._holds.fail(experiment, trouble)
            if is_everyone_s:
                self._holds.fail_all(trouble)
        waiting = self._queue.count(experiment), experiment, len(self._queue)
        level = logging.WARNING if self._outage_log.is_due() else logging.DEBUG
        _log.log(level, "Rewards wait, %d of %s, %d in all: %s", *waiting, trouble)
        return is_everyone_s

    def _send(self, experiment: str, part: Part, deadline: Deadline) -> None:
        counted = self._told(experiment, part.rewards, deadline)
        self._counter.add("rewards_sent", counted)
        self._counter.add("rewards_refused", len(part.rewards) - counted)
        with self._changed:
            self._holds.succeed(experiment)
            self._queue.settle(part.segment, part.rewards)
            self._changed.notify_all()

    def _told(self, experiment: str, rewards: list[Told], deadline: Deadline) -> int:
        """How many of them count; those that do not will not when they are sent again."""
        try:
            results = self._wire.run(sent_rewards(experiment, [told.reward for told in rewards], deadline))
        except Error as refusal:
            if isinstance(refusal, _LATER) or refusal.code in _MISDIRECTED:
                raise
            _log.warning("%d rewards of %s were refused: %s", len(rewards), experiment, refusal)
            return 0
        refused = [(told.reward, result) for told, result in zip(rewards, results, strict=True) if not result.counts]
        for reward, result in refused:
            _log.warning("A reward of %s was refused: %s: %s", experiment, reward, result)
        return len(rewards) - len(refused)


def _force(segments: Iterable[Segment]) -> None:
    try:
        for segment in segments:
            segment.force()
    except OSError as trouble:
        _log.warning("Spooled rewards could not be forced to the disk: %s", trouble)
