"""`make demo`: the service on a temporary database, three experiments, and simulated visitors. Ctrl-C stops it all."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_TICK_SECONDS = 0.25
_START_SECONDS = 120
_SILENT_SECONDS = 20


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
        """What a visitor gives for this arm; None stays silent."""
        if self.spread is not None:
            return max(0.0, random.gauss(self.worth[arm], self.spread))
        converts = random.random() < self.worth[arm]  # noqa: S311 - likewise
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


class Demo:
    """Talks to the service as a product's backend would."""

    def __init__(self, address: str) -> None:
        self.address = address

    def call(self, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401 - any JSON
        """One request."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(  # noqa: S310 - our own service
            self.address + path, data, {"Content-Type": "application/json"}, method=method
        )
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - likewise
            return json.load(answer)

    def wait_until_ready(self) -> None:
        """Until the service answers."""
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                self.call("GET", "/readyz")
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
            else:
                return

    def visit(self, crowd: Crowd, tick: int, visitors: int) -> None:
        """Some visitors come, and the rewards that are due are told."""
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


def run(address: str, seconds: float | None = None) -> None:
    """Create the experiments and send visitors, for ever or for some seconds."""
    demo = Demo(address)
    demo.wait_until_ready()
    for crowd in CROWDS:
        demo.call("POST", "/v1/experiments", crowd.experiment)
    print(f"\n  Open {address} and watch. Ctrl-C stops it.\n", flush=True)  # noqa: T201 - says what to do
    began, tick = time.monotonic(), 0
    while seconds is None or time.monotonic() - began < seconds:
        tick += 1
        for crowd in CROWDS:
            try:
                demo.visit(crowd, tick, crowd.visitors)
            except urllib.error.HTTPError as refused:
                if refused.code != 409:  # noqa: PLR2004 - paused or archived by hand: the visitors come back later
                    raise
        time.sleep(max(0.0, began + tick * _TICK_SECONDS - time.monotonic()))


def main() -> int:
    """Start the service, the visitors, and stop both together."""
    port = os.environ.get("BESTARM_PORT", "8000")
    with tempfile.TemporaryDirectory(prefix="bestarm-demo-") as folder:
        settings = {"BESTARM_DATABASE_URL": f"sqlite:///{Path(folder) / 'demo.db'}", "BESTARM_LOG_LEVEL": "warning"}
        service = subprocess.Popen([sys.executable, "-m", "service", "serve", "--port", port], env=os.environ | settings)  # noqa: S603 - our own program
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            run(f"http://127.0.0.1:{port}")
        except (KeyboardInterrupt, OSError) as stopped:
            if service.poll() is not None:
                return service.returncode
            if not isinstance(stopped, KeyboardInterrupt):
                raise
        finally:
            service.terminate()
            service.wait(30)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
