"""Three workloads: `ledger` asks and tells what a model follows, `idempotence` repeats itself, `indefinite` hangs up too soon."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Thread
from typing import Any, TypeAlias

from testing.torture.calls import Call
from testing.torture.recording_client import RecordingClient, Request

ARMS = [{"key": name} for name in ("a", "b", "c", "d")]
EXPERIMENTS: dict[str, dict[str, Any]] = {
    "ledger": {"arms": ARMS, "reward": {"kind": "bounded", "min": 0, "max": 1}},
    "planned": {"arms": ARMS, "reward": {"kind": "real"}, "policy": {"kind": "almost_tracking", "batch_size": 16, "seed": 1}},
    "repeated": {"arms": ARMS},
    "sticky": {"arms": ARMS, "sticky": True},
    "indefinite": {"arms": ARMS},
    "expiring": {
        "arms": ARMS,
        "reward": {"kind": "bounded", "min": 0, "max": 1},
        "expiry": {"after_seconds": 0.5, "reward": None},
    },
}
"""What the workloads need, by key."""
_REMEMBERED = 200
_SHARED_UNITS = 500
# Seconds: some answers are there by then, some are not.
_HANGS_UP_AFTER = 0.0005, 0.02
Turn: TypeAlias = Callable[[RecordingClient, int], None]


def _ask(client: RecordingClient, experiment: str, turn: int, unit: str | None = None) -> Request:
    name = f"{client.name}-{turn}"
    unit = unit or name
    path = f"/v1/experiments/{experiment}/assignments"
    body = {"unit": unit}
    return Request(kind="ask", experiment=experiment, operation=name, path=path, body=body, sent=body, key=name)


def _tell(experiment: str, assignment: str, reward: float, kind: str = "tell") -> Request:
    path = f"/v1/experiments/{experiment}/assignments/{assignment}/reward"
    sent = {"assignment": assignment, "reward": reward}
    name = f"{kind} {assignment}"
    if kind == "void":
        return Request(kind="void", experiment=experiment, operation=name, path=path, method="DELETE", sent=sent)
    if kind == "correct":
        return Request(
            kind="correct", experiment=experiment, operation=name, path=path, method="PUT", body={"reward": reward}, sent=sent
        )
    return Request(kind="tell", experiment=experiment, operation=name, path=path, body={"reward": reward}, sent=sent)


def _look(experiment: str) -> Request:
    path = f"/v1/experiments/{experiment}/recommendation"
    return Request(kind="look", experiment=experiment, operation="look", path=path, method="GET")


def _assignment_of(asked: Call) -> str | None:
    return asked.answer["id"] if asked.is_acknowledged else None


def ledger(client: RecordingClient, turn: int) -> None:
    """Asks, rewards, corrections and voids, batches, observations with ids, and looks."""
    dice = client.random
    experiment = client.experiment(dice.choice(["ledger", "ledger", "planned", "expiring"]))
    choice = dice.random()
    if choice < 0.2:
        client.until_definite(_look(experiment))
    elif choice < 0.3:
        _observe(client, experiment, turn)
    elif choice < 0.4:
        _ask_many(client, experiment, turn)
    else:
        assignment = _assignment_of(client.until_definite(_ask(client, experiment, turn)))
        if assignment is not None and dice.random() < 0.9:
            _lead_on(client, experiment, assignment)


def _lead_on(client: RecordingClient, experiment: str, assignment: str) -> None:
    """Reward it; some are told twice, some corrected, some voided."""
    dice, reward = client.random, client.random.random()
    if not client.until_definite(_tell(experiment, assignment, reward)).is_acknowledged:
        return
    choice = dice.random()
    if choice < 0.1:
        client.until_definite(_tell(experiment, assignment, reward))
    elif choice < 0.2:
        client.until_definite(_tell(experiment, assignment, dice.random(), "correct"))
    elif choice < 0.25:
        client.until_definite(_tell(experiment, assignment, 0, "void"))


def _ask_many(client: RecordingClient, experiment: str, turn: int) -> None:
    name = f"{client.name}-{turn}"
    body = {"units": [f"{name}-{number}" for number in range(client.random.randint(2, 30))]}
    path = f"/v1/experiments/{experiment}/assignments/batch"
    request = Request(kind="ask_many", experiment=experiment, operation=name, path=path, body=body, sent=body, key=name)
    drawn = client.until_definite(request)
    for one in [one for one in drawn.answer or [] if one["id"] is not None][:2]:  # a concluded experiment draws none
        client.until_definite(_tell(experiment, one["id"], client.random.random()))


def _observe(client: RecordingClient, experiment: str, turn: int) -> None:
    name, dice = f"{client.name}-{turn}", client.random
    items = [
        {"id": f"{name}-{number}", "arm": dice.choice(ARMS)["key"], "reward": dice.random()}
        for number in range(dice.randint(1, 5))
    ]
    path = f"/v1/experiments/{experiment}/observations"
    body = {"observations": items}
    request = Request(kind="observe", experiment=experiment, operation=name, path=path, body=body, sent={"items": items})
    client.until_definite(request)


class Idempotence:
    """The same keys again: by two connections at once, later, and with another body; units that all clients share."""

    def __init__(self, second: RecordingClient) -> None:
        self._second = second
        self._old: deque[Request] = deque(maxlen=_REMEMBERED)

    def __call__(self, client: RecordingClient, turn: int) -> None:
        """One turn."""
        dice = client.random
        choice = dice.random()
        if choice < 0.4 or not self._old:
            request = _ask(client, client.experiment("repeated"), turn)
            beside = Thread(target=self._second.until_definite, args=(request,))
            beside.start()
            client.until_definite(request)
            beside.join()
            self._old.append(request)
        elif choice < 0.6:
            client.until_definite(dice.choice(self._old))
        elif choice < 0.75:
            old = dice.choice(self._old)
            body = {"unit": f"another-{turn}"}
            other = Request(
                kind="ask", experiment=old.experiment, operation=old.operation, path=old.path, body=body, sent=body, key=old.key
            )
            client.until_definite(other)
        elif choice < 0.9:
            request = _ask(client, client.experiment("sticky"), turn, f"shared-{dice.randrange(_SHARED_UNITS)}")
            client.until_definite(request)
            self._old.append(request)
        else:
            client.until_definite(_look(client.experiment(dice.choice(["repeated", "sticky"]))))


def indefinite(client: RecordingClient, turn: int) -> None:
    """Hang up after a few milliseconds, then ask again what became of it."""
    dice, experiment = client.random, client.experiment("indefinite")
    asked = client.until_definite(_ask(client, experiment, turn), timeout=dice.uniform(*_HANGS_UP_AFTER))
    assignment = _assignment_of(asked)
    if assignment is not None:
        client.until_definite(_tell(experiment, assignment, dice.randrange(2)), timeout=dice.uniform(*_HANGS_UP_AFTER))
    if turn % 20 == 0:
        client.until_definite(_look(experiment))


WORKLOADS = ("ledger", "idempotence", "indefinite")


def turn_of(workload: str, second: RecordingClient) -> Turn:
    """What a client of this workload does in one turn; some need another connection beside it."""
    if workload == "idempotence":
        return Idempotence(second)
    return {"ledger": ledger, "indefinite": indefinite}[workload]
