"""One process of clients: `python -m testing.torture.client_process WORKLOAD THREADS FOLDER PREFIX URL…`, until its input ends.

It imports nothing of the service: a client starts quickly, and knows only HTTP.
"""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

from testing.torture.calls import CallLog
from testing.torture.recording_client import RecordingClient, Target
from testing.torture.workloads import turn_of

# Several clients on two cores are to leave the service some processor time.
_PAUSE_SECONDS = 0.002


def _play(name: str, workload: str, folder: Path, target: Target, ending: threading.Event) -> None:
    log = CallLog(folder / f"{name}.calls")
    first, second = (RecordingClient(name, workload, target, log, ending) for _ in range(2))
    turn = turn_of(workload, second)
    number = 0
    while not ending.is_set():
        turn(first, number)
        number += 1
        time.sleep(_PAUSE_SECONDS)
    log.close()


def main(workload: str, threads: int, folder: Path, target: Target) -> None:
    """Play until there is nobody to play for."""
    ending = threading.Event()
    players = [
        threading.Thread(target=_play, args=(f"{workload}.{number}", workload, folder, target, ending))
        for number in range(threads)
    ]
    for player in players:
        player.start()
    sys.stdin.read()
    ending.set()
    for player in players:
        player.join()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), Target(sys.argv[5:], sys.argv[4]))
