"""Queued rewards on the disk, so that they survive the process.

A folder with files of lines, `{"experiment": …, "assignment": …, "reward": …}` each, which are only ever appended to. A process
writes files of its own, and holds a lock on each; a file that nobody holds was left by a process that died, and whoever finds it
sends it. A file is removed when the service has all that is in it. Between the two a process may die: then rewards are sent
again, and the service counts each once.

A file's name tells the service that its rewards belong to, by a digest of the address: clients of several services may share the
folder. A name without one is of an earlier version, and whoever finds the file sends it.

A reward is handed to the operating system before `reward_later` returns, so it survives the process, however that ends. It is
forced to the disk (fsync) only if it could not be sent at once: a power failure may take what was queued in the last second.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Self

from bestarm.assignment import Reward, number

try:
    import fcntl
except ImportError:  # pragma: no cover - not on Windows, where there is no spool
    fcntl = None  # type: ignore[assignment]

_log = logging.getLogger("bestarm")


class Told(NamedTuple):
    """A reward and the experiment it belongs to."""

    experiment: str
    reward: Reward

    def line(self) -> bytes:
        """The reward as it stands in a file."""
        return json.dumps({"experiment": self.experiment, **self.reward.written()}, allow_nan=False).encode() + b"\n"


def _read(line: bytes) -> Told:
    """The reward of a line, if it can be sent: one that cannot would hold up whatever waits behind it."""
    written = json.loads(line)
    named = {name: written[name] for name in ("assignment", "unit") if name in written}
    if not isinstance(written["experiment"], str) or not all(isinstance(name, str) for name in named.values()):
        raise TypeError("Names are texts.")
    return Told(written["experiment"], Reward(number(written["reward"]), **named))


class SpoolFile:
    """One file, held by this process."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor
        self._is_forced = False
        self._is_torn = False

    def append(self, told: Told) -> None:
        """Hand a reward to the operating system. A line that a full disk has cut off is ended, so that it spoils no other."""
        line = b"\n" + told.line() if self._is_torn else told.line()
        written = 0
        self._is_forced = False
        try:
            while written < len(line):
                written += os.write(self._descriptor, line[written:])
        finally:
            if written:
                self._is_torn = written < len(line)

    def force(self) -> None:
        """Wait until all of it is on the disk."""
        if self._is_forced or self._descriptor < 0:
            return
        self._is_forced = True  # of what is there by now; whatever another thread appends meanwhile takes it back
        try:
            os.fsync(self._descriptor)
        except OSError:
            self._is_forced = False
            raise

    def rewards(self) -> Iterator[Told]:
        """What is in it. A line that is not whole was being written when the process died: nobody was told that it is safe."""
        for line in filter(None, self.path.read_bytes().splitlines()):
            try:
                yield _read(line)
            except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
                _log.warning("%s has a line that is no reward: %r", self.path, line[:200])

    def remove(self) -> None:
        """The service has it all."""
        self.path.unlink(missing_ok=True)
        self.release()

    def release(self) -> None:
        """Let it go, for another process to find."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class Spool:
    """The folder."""

    def __init__(self, folder: Path, service: str) -> None:
        if fcntl is None:
            raise ValueError("A spool needs file locks, which this system does not have.")
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._service = hashlib.sha256(service.encode()).hexdigest()[:12]
        self._ours = re.compile(rf"rewards-({self._service}-)?[0-9]+-[^-]+\.jsonl")

    @classmethod
    def at(cls, folder: str | os.PathLike[str] | None, service: str) -> Self | None:
        """The folder, if one is wanted, for rewards of the service at an address."""
        return None if folder is None else cls(Path(folder), service)

    def new_file(self) -> SpoolFile:
        """A file for rewards to come, held from its first moment: it is named as a spool's only when it is locked."""
        name = f"rewards-{self._service}-{os.getpid()}-{secrets.token_hex(6)}.jsonl"
        hidden = self._folder / f".{name}"
        descriptor = os.open(hidden, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            hidden.rename(self._folder / name)
        except OSError:  # a disk that knows no locks, or is gone
            os.close(descriptor)
            hidden.unlink(missing_ok=True)
            raise
        return SpoolFile(self._folder / name, descriptor)

    def left_behind(self) -> Iterator[SpoolFile]:
        """Files for this service that no living process holds, held by this one from now on."""
        for path in sorted(self._folder.glob("rewards-*.jsonl")):
            found = _held(path) if self._ours.fullmatch(path.name) else None
            if found is not None:
                yield found


def _held(path: Path) -> SpoolFile | None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
    except FileNotFoundError:
        return None
    except OSError as trouble:
        _log.warning("Rewards that were left behind cannot be read: %s", trouble)
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(descriptor).st_nlink:  # else another process has sent it meanwhile
            return SpoolFile(path, descriptor)
    except OSError:  # held, as a rule
        pass
    os.close(descriptor)
    return None
