"""`make demo`: a service of its own, on its own port and a temporary database, three experiments and simulated visitors.

It talks to no service but the one it started. Ctrl-C stops both, and nothing is left; if something goes wrong, it says in a
sentence what, and keeps the service's log.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from statistics import fmean
from typing import Any

from scripts.demo_service import START_SECONDS, DemoService, Trouble, require_free

_PORT = 8100
"""Not that of `make serve`: both may run."""
TICK_SECONDS = 0.25
_ANSWER_SECONDS = 10
_SILENT_SECONDS = 20
_INTERRUPTIONS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass
class Crowd:
    """The visitors of one experiment: what each arm is worth to them, how many come, and when their rewards arrive."""

    experiment: dict[str, Any]
    worth: dict[str, float]
    visitors: int
    late: int
    """Ticks until a reward comes."""
    spread: float | None = None
    """None: visitors convert or not; else rewards vary so much around the arm's worth."""
    waiting: deque[tuple[int, str, float]] = field(default_factory=deque)

    def reward(self, arm: str) -> float | None:
        """What a visitor gives for this arm; None stays silent. One that somebody added meanwhile is as good as the average."""
        self.worth.setdefault(arm, fmean(self.worth.values()))
        if self.spread is not None:
            return max(0.0, random.gauss(self.worth[arm], self.spread))
        converts = random.random() < self.worth[arm]  # noqa: S311 - simulated visitors
        silent = self.experiment.get("expiry") is not None
        return 1.0 if converts else None if silent else 0.0


CROWDS = [
    Crowd(
        {
            "key": "checkout-button",
            "name": "Checkout button",
            "description": "Which colour of the button makes more visitors finish their order?",
            "arms": [
                {"key": "grey", "name": "Grey (today)", "value": {"color": "#8a8f93"}, "min_share": 0.05},
                {"key": "green", "name": "Green", "value": {"color": "#0b7268"}},
                {"key": "orange", "name": "Orange", "value": {"color": "#c86414"}},
                {"key": "outline", "name": "Outline", "value": {"color": "transparent"}},
            ],
        },
        worth={"grey": 0.11, "green": 0.17, "orange": 0.14, "outline": 0.07},
        visitors=16,
        late=3,
    ),
    Crowd(
        {
            "key": "signup-headline",
            "name": "Sign-up headline",
            "description": "Eight headlines. Whoever does not sign up says nothing: silence counts as no after 20 seconds.",
            "arms": [
                {"key": f"headline-{number}", "name": words, "value": words}
                for number, words in enumerate(
                    [
                        "Start for free",
                        "Ship with confidence",
                        "Know what works",
                        "Join 4,000 teams",
                        "Stop guessing",
                        "Try it today",
                        "Built for makers",
                        "Answers, live",
                    ],
                    1,
                )
            ],
            "expiry": {"after_seconds": _SILENT_SECONDS, "reward": 0},
        },
        worth=dict(
            zip((f"headline-{number}" for number in range(1, 9)), (0.20, 0.22, 0.31, 0.25, 0.27, 0.21, 0.18, 0.24), strict=True)
        ),
        visitors=12,
        late=6,
    ),
    Crowd(
        {
            "key": "search-ranking",
            "name": "Search ranking",
            "description": "Seconds until a visitor clicks a result: less is better.",
            "reward": {"kind": "bounded", "goal": "minimize", "min": 0, "max": 60},
            "arms": [
                {"key": "bm25", "name": "Keyword (today)", "value": {"model": "bm25"}},
                {"key": "hybrid", "name": "Hybrid", "value": {"model": "hybrid", "blend": 0.5}},
                {"key": "semantic", "name": "Semantic", "value": {"model": "embedding"}},
            ],
            "policy": {"kind": "almost_tracking"},
        },
        worth={"bm25": 14.0, "hybrid": 11.2, "semantic": 12.1},
        visitors=8,
        late=2,
        spread=5.0,
    ),
]


# A reply that is cut off, or none.
_NO_ANSWER = (OSError, HTTPException, json.JSONDecodeError)


class Demo:
    """Talks to the service as a product's backend would."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # no proxy stands between us and ourselves

    def call(self, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401 - any JSON
        """One request."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(  # noqa: S310 - our own service
            self.address + path, data, {"Content-Type": "application/json"}, method=method
        )
        with self._opener.open(request, timeout=_ANSWER_SECONDS) as answer:
            return json.load(answer)

    def wait_until_ready(self, require_service: Callable[[], None]) -> None:
        """Until the service answers."""
        deadline = time.monotonic() + START_SECONDS
        while True:
            require_service()
            try:
                self.call("GET", "/readyz")
            except _NO_ANSWER:
                if time.monotonic() > deadline:
                    raise Trouble(f"The service does not answer at {self.address}.") from None
                time.sleep(0.1)
            else:
                return

    def visit(self, crowd: Crowd, tick: int, visitors: int) -> None:
        """Some visitors come, and the rewards that are due are told; not while somebody has stopped or removed the experiment."""
        try:
            self._visit(crowd, tick, visitors)
        except urllib.error.HTTPError as refused:
            if refused.code not in {404, 409}:
                raise

    def _visit(self, crowd: Crowd, tick: int, visitors: int) -> None:
        where = f"/v1/experiments/{crowd.experiment['key']}"
        asked = self.call("POST", f"{where}/assignments/batch", {"count": visitors})["assignments"]
        for one in asked:
            reward = crowd.reward(one["arm"])
            if reward is not None and one["id"] is not None:
                crowd.waiting.append((tick + crowd.late, one["id"], reward))
        due = []
        while crowd.waiting and crowd.waiting[0][0] <= tick:
            _, assignment, reward = crowd.waiting.popleft()
            due.append({"assignment": assignment, "reward": reward})
        if due:
            self.call("POST", f"{where}/rewards", {"rewards": due})


def run(address: str, seconds: float | None = None, require_service: Callable[[], None] = lambda: None) -> None:
    """Create the experiments and send visitors, for ever or for some seconds, while the service is there."""
    demo = Demo(address)
    demo.wait_until_ready(require_service)
    for crowd in CROWDS:
        demo.call("POST", "/v1/experiments", crowd.experiment)
    _say(f"\n  Open {address} and watch. Ctrl-C stops it.\n")
    began, tick, answers = time.monotonic(), 0, True
    while seconds is None or time.monotonic() - began < seconds:
        tick += 1
        try:
            for crowd in CROWDS:
                demo.visit(crowd, tick, crowd.visitors)
        except _NO_ANSWER as trouble:
            require_service()
            if answers:
                _say(f"The service does not answer as it should ({trouble}). The visitors try again.")
            answers = False
        else:
            if not answers:
                _say("The service answers again.")
            answers = True
        time.sleep(max(0.0, began + tick * TICK_SECONDS - time.monotonic()))


def play(port: int) -> None:
    """Start the service and send visitors, until interrupted."""
    require_free(port)
    folder = Path(tempfile.mkdtemp(prefix="bestarm-demo-"))
    service, well = None, True
    try:
        service = DemoService(folder, port)
        _say(f"The demo's database and log are in {folder} until it ends.")
        run(service.address(), require_service=service.require)
    except (Trouble, *_NO_ANSWER) as trouble:
        well = False
        raise Trouble(f"{trouble}\nThe log of the demo's service is kept: {folder / 'service.log'}") from trouble
    finally:
        for number in _INTERRUPTIONS:  # whoever presses Ctrl-C once more
            signal.signal(number, signal.SIG_IGN)
        if service is not None:
            service.stop()
        if well:
            shutil.rmtree(folder, ignore_errors=True)


def _say(sentence: str) -> None:
    print(sentence, flush=True)  # noqa: T201 - a program's word to people


def _port(text: str) -> int:
    if text.isdecimal() and int(text) in range(1, 65536):
        return int(text)
    raise argparse.ArgumentTypeError(f"{text} is not a port: 1 to 65535")


def main() -> int:
    """The exit code: 0 if it ran until it was stopped."""
    for number in _INTERRUPTIONS:
        signal.signal(number, signal.default_int_handler)
    parser = argparse.ArgumentParser(prog="make demo", description="A service with simulated visitors, to watch.")
    parser.add_argument("--port", type=_port, default=_PORT, help=f"port of the demo's service ({_PORT})")
    try:
        play(parser.parse_args().port)
    except KeyboardInterrupt:
        _say("\nThe demo has ended; nothing is left of it.")
    except Trouble as trouble:
        print(trouble, file=sys.stderr)  # noqa: T201 - a command speaks
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
