"""How exports leave a machine to those who ask: beside a busy worker, all of its exports together take a part p of one processor.

After w seconds of work an export that is one of n rests for

    w (n / p - 1),

so that it works for w of every w n / p seconds, whatever it makes and however it comes in pieces. Its work is the processor time
of its process, and what it waited for the database, which works for it meanwhile, and not at a low priority.
"""

from __future__ import annotations

import threading
import time

# Of one processor, and so less of a machine with several.
PART = 0.1
# Pieces are some 10 ms of work. What took seconds was a database that stood still for everybody, and proxies cut off whoever is
# silent for a minute.
_LONGEST_REST_SECONDS = 20.0


def rest_after(work: float, sharing: int) -> float:
    """Seconds to rest after seconds of work, as one of so many exports beside a busy worker; 0 exports mean an idle one."""
    return min(work * (sharing / PART - 1), _LONGEST_REST_SECONDS) if sharing else 0.0


class ExportPace:
    """The rests of one export, in its process: none before its worker says that it is busy, or once it is no more."""

    def __init__(self) -> None:
        self._worked_until: float | None = None
        self._sharing = 0
        self._told = threading.Condition()

    def tell(self, sharing: int) -> None:
        """So many exports share what a busy worker leaves them; 0: it is not busy. A rest ends that is too long by this."""
        with self._told:
            self._sharing = sharing
            self._told.notify()

    def rest(self, waited: float) -> None:
        """Between two pieces of the file, for which the database was waited for so long in all.

        What it took until the first one, mostly to start, is left out: small files come at once.
        """
        now = time.process_time() + waited
        work = 0.0 if self._worked_until is None else now - self._worked_until
        self._worked_until, began = now, time.monotonic()
        with self._told:
            while (left := began + rest_after(work, self._sharing) - time.monotonic()) > 0:
                self._told.wait(left)
