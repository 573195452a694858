"""Many asks in flight spread as the weights say, and the plan of Almost Tracking is shared by all workers."""

from __future__ import annotations

import asyncio
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from service.application.commands.arms import ChangeArm
from service.application.commands.ask import Ask, AskAnswer
from service.application.commands.tell import ObservationItem, Observe, Tell
from service.domain import PolicySpec, RewardSpec
from service.domain.callers import by_service
from testing.databases import NewDatabase
from testing.json_client import JsonClient
from testing.server import Server
from testing.workers import Workers
from tests.live.model import Model, ModelArm, Settings

_ASKS = 1_000
_IN_FLIGHT = 100


def test_a_thousand_simultaneous_asks_split_as_the_targets_say(workers: Workers, key: str) -> None:
    """All asked before the first is answered, half of them on each of two workers: within one draw of the targets' split."""
    workers.create(key, [(name, 0.0) for name in "abcde"], reward=RewardSpec("real"))
    evidence = {"a": 0.9, "b": 0.5, "c": 0.45, "d": 0.1, "e": -1.0}
    workers.submit(key, Observe([ObservationItem(arm, mean, None) for arm, mean in evidence.items()]))
    targets = {one.arm.key: one.target_share for one in workers.look(key).standings}

    async def ask_all() -> list[AskAnswer]:
        asked = [workers.contexts[number % 2].writer.submit(by_service(key), Ask(None)) for number in range(_ASKS)]
        return await asyncio.gather(*asked)

    counts = Counter(answer.arm.key for answer in workers.run(ask_all()))
    for arm, target in targets.items():
        assert counts[arm] + 1 == pytest.approx(target * (_ASKS + 5), abs=1), arm
    assert {one.arm.key: one.target_share for one in workers.look(key).standings} == targets


def test_a_thousand_asks_over_http_split_as_the_targets_say(live: Server, http: httpx.Client, key: str) -> None:
    """A hundred in flight, two workers: draw numbers without gaps, and every arm within one draw of its target's part."""
    path = f"/v1/experiments/{key}"
    arms = [{"key": name} for name in "abcde"]
    http.post("/v1/experiments", json={"key": key, "arms": arms, "reward": {"kind": "real"}, "expiry": None})
    evidence = {"a": 0.9, "b": 0.5, "c": 0.45, "d": 0.1, "e": -1.0}
    items = [{"arm": arm, "reward": mean} for arm, mean in evidence.items()]
    http.post(f"{path}/observations", json={"observations": items})
    targets = {arm["arm"]: arm["target_share"] for arm in http.get(f"{path}/recommendation").json()["arms"]}

    def ask_in_turn(_client: int) -> list[dict[str, Any]]:
        with JsonClient(live.url) as client:
            return [client.ask(key) for _ in range(_ASKS // _IN_FLIGHT)]

    with ThreadPoolExecutor(_IN_FLIGHT) as clients:
        drawn = [one for part in clients.map(ask_in_turn, range(_IN_FLIGHT)) for one in part]
    assert sorted(one["draw"] for one in drawn) == list(range(1, _ASKS + 1))
    total = _ASKS + len(evidence)
    counts = Counter(one["arm"] for one in drawn)
    for arm, target in targets.items():
        assert counts[arm] + 1 == pytest.approx(target * total, abs=1), arm
    seen = http.get(f"{path}/recommendation").json()
    assert {arm["arm"]: arm["target_share"] for arm in seen["arms"]} == targets


def told(workers: Workers, model: Model, key: str, count: int, worker: int) -> None:
    """Ask and tell so many times on one worker, in service and model."""
    for _ in range(count):
        answer = workers.submit(key, Ask(None), worker)
        _, arm, number = model.ask(None, None, workers.now)
        assert answer.assignment is not None
        assert (answer.arm.position, answer.assignment.draw) == (arm, number)
        reward = float(number is not None and (number * 7 + arm) % 5)
        workers.submit(key, Tell(answer.assignment.id, "reward", reward), 1 - worker)
        model.tell(model.draws[-1], reward, correct=False)


@pytest.mark.parametrize("sufficiency_by", ["planned", "realised"])
def test_workers_share_a_plan_restarts_continue_it_and_disabled_arms_leave_it(
    workers: Workers,
    key: str,
    sufficiency_by: Any,  # noqa: ANN401 - one of two words
) -> None:
    """Draws come from one plan whichever worker is asked, before and after a restart, and follow arms that come and go."""
    names = ["a", "b", "c", "d"]
    spec = PolicySpec("almost_tracking", seed=3, batch_size=24, sufficiency_by=sufficiency_by)
    workers.create(key, [(name, 0.0) for name in names], policy=spec, reward=RewardSpec("real"))
    settings = Settings("almost_tracking", sufficiency_by, 24, 3, reward="real")
    model = Model(settings, [ModelArm(name) for name in names])
    for turn in range(12):
        told(workers, model, key, 5, turn % 2)
    workers.restart()
    told(workers, model, key, 7, 1)
    workers.submit(key, ChangeArm("b", {"status": "disabled"}), 0)
    model.change_arm(1, active=False)
    drawn = len(model.draws)
    told(workers, model, key, 9, 1)
    workers.restart()
    told(workers, model, key, 20, 0)
    assert 1 not in {draw.arm for draw in model.draws[drawn:]}
    workers.submit(key, ChangeArm("b", {"status": "active"}), 1)
    model.change_arm(1, active=True)
    told(workers, model, key, 60, 0)
    assert 1 in {draw.arm for draw in model.draws[-60:]}
    workers.replay(key)


@pytest.mark.process
def test_a_plan_outlives_a_killed_service(new_database: NewDatabase, key: str) -> None:
    """Two workers asked from many sides, killed in the middle and started again: the draws are those of one loop."""
    url = new_database()
    path = f"/v1/experiments/{key}"
    names = ["a", "b", "c"]
    model = Model(Settings("almost_tracking", seed=11, batch_size=50), [ModelArm(name) for name in names])
    expected = [model.ask(None, None, 0)[1] for _ in range(200)]

    def ask_many(server: Server, count: int) -> list[tuple[int, str]]:
        with server.client() as client, ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: client.post(f"{path}/assignments", json={}), range(count)))
        return [(answer.json()["draw"], answer.json()["arm"]) for answer in answers]

    server = Server(url, workers=2)
    with server.client() as client:
        policy = {"kind": "almost_tracking", "seed": 11, "batch_size": 50}
        made = {"key": key, "arms": [{"key": name} for name in names], "policy": policy}
        assert client.post("/v1/experiments", json=made).status_code == 201
    drawn = ask_many(server, 120)
    server.kill()
    with Server(url, workers=2) as again:
        drawn += ask_many(again, 80)
    assert [number for number, _ in sorted(drawn)] == list(range(1, 201))
    assert [names.index(arm) for _, arm in sorted(drawn)] == expected


def test_an_arm_whose_first_reward_is_late_neither_stalls_nor_floods(workers: Workers, key: str) -> None:
    """Without a reward its target is 1/K: a silent arm is drawn as often as that, not more and not less."""
    workers.create(key, [("a", 0.0), ("b", 0.0), ("c", 0.0), ("late", 0.0)])
    items = [ObservationItem(arm, reward, None) for arm in "abc" for reward in (0.0, 1.0)]
    workers.submit(key, Observe(items))
    answers = workers.submit_together(key, [Ask(None) for _ in range(400)])
    shares = Counter(answer.arm.key for answer in answers)
    assert shares["late"] == pytest.approx(406 / 4, abs=1)
