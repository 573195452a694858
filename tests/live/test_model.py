"""Whatever happens in whatever order, the service knows and decides what the specification says (tests/live/model.py)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

from service.application.commands.arms import AddArm, ChangeArm
from service.application.commands.ask import Ask, AskAnswer, AskMany
from service.application.commands.experiments import Patch
from service.application.commands.expire import Sweep
from service.application.commands.lifecycle import LifecycleMove
from service.application.commands.observations import ChangeObservation
from service.application.commands.tell import ObservationItem, Observe, RewardItem, Tell, TellMany
from service.domain import Arm, Expiry, PolicySpec, RewardSpec
from service.errors import BestArmError
from testing.databases import NewDatabase
from testing.workers import Workers
from tests.live.model import Model, ModelArm, ModelDraw, Refused, Settings

_EXAMPLES = int(os.environ.get("BESTARM_LIVE_EXAMPLES", "25"))
_STEPS = 30
# Making a failing example small takes minutes: worth it for the one who looks for the reason, not for the one who runs all tests.
_PHASES = tuple(Phase) if "BESTARM_LIVE_SHRINK" in os.environ else (Phase.explicit, Phase.reuse, Phase.generate)
_keys = count(1)

_SECOND = 1_000_000
_WINDOWS = (0.001, 5.0, 20.0)
_UNITS = ("ann", "bob", "eve", "kim")
_FLOORS = (0.0, 0.0, 0.1, 0.25)
_REWARDS: dict[str, st.SearchStrategy[float]] = {
    "binary": st.sampled_from((0.0, 1.0)),
    "bounded": st.sampled_from((-1.0, 0.1, 0.3, 1 / 3, 2.0)) | st.floats(-1.0, 2.0, allow_subnormal=False),
    "real": st.sampled_from((0.1, -0.3, 1e100, -1e100, 1e-300, 5e-324, 7.0)) | st.floats(-5.0, 5.0),
}
_EXPIRIES: dict[str, st.SearchStrategy[float | None]] = {
    "binary": st.sampled_from((None, 0.0, 1.0)),
    "bounded": st.sampled_from((None, -1.0, 0.0, 0.1)),
    "real": st.sampled_from((None, 0.0, 0.1, -2.5)),
}
_numbers = st.integers(0, 10**6)
_workers = st.sampled_from((0, 1))


def expect_refusal(answer: object, refused: Refused) -> None:
    """The service refused, and for the model's reason."""
    assert isinstance(answer, BestArmError)
    assert type(answer).__name__ == str(refused)


class LiveTraffic(RuleBasedStateMachine):
    """The service and the model side by side."""

    workers: Workers

    @initialize(data=st.data())
    def create(self, data: st.DataObject) -> None:
        """An experiment of any kind."""
        draw = data.draw
        kind: Any = draw(st.sampled_from(("binary", "bounded", "real")))
        policy: Any = draw(st.sampled_from(("simple_tracking", "almost_tracking", "almost_tracking", "uniform")))
        expiry = draw(st.none() | st.tuples(st.sampled_from(_WINDOWS), _EXPIRIES[kind]))
        self.made = Settings(
            policy=policy,
            sufficiency_by=draw(st.sampled_from(("planned", "realised"))),
            batch_size=draw(st.sampled_from((None, 13))) if policy == "almost_tracking" else None,
            seed=draw(st.integers(0, 2**53 - 1)),
            sharpness=draw(st.sampled_from((1.0, 1.0, 1.5))),
            guard=draw(st.sampled_from((0.0, 0.5))),
            ties=draw(st.sampled_from(("limit", "paper"))),
            keeps_floors=draw(st.booleans()),
            reward=kind,
            minimize=draw(st.booleans()),
            sticky=draw(st.booleans()),
            expiry=expiry,
        )
        self.rewards = _REWARDS[kind]
        self.expiries = _EXPIRIES[kind]
        arms = [(f"arm-{number}", draw(st.sampled_from(_FLOORS))) for number in range(draw(st.integers(2, 4)))]
        self.model = Model(self.made, [ModelArm(name, least) for name, least in arms])
        self.key = f"model-{next(_keys)}"
        self.ids: list[str] = []
        reward = RewardSpec(kind, "minimize" if self.made.minimize else "maximize")
        if kind == "bounded":
            reward = RewardSpec(kind, reward.goal, -1.0, 2.0)
        self.workers.create(
            self.key,
            arms,
            policy=PolicySpec(
                policy,
                self.made.seed,
                self.made.sharpness,
                self.made.batch_size,
                sufficiency_by=self.made.sufficiency_by,
                guard=self.made.guard,
                ties=self.made.ties,
                keeps_floors=self.made.keeps_floors,
            ),
            reward=reward,
            expiry=Expiry(*expiry) if expiry else None,
            sticky=self.made.sticky,
        )

    # -- asks ---------------------------------------------------------------------------------------------------

    @rule(
        units=st.lists(st.none() | st.sampled_from(_UNITS), min_size=1, max_size=8),
        id_key=st.none() | st.sampled_from(("once", "twice")),
        worker=_workers,
    )
    def ask_together(self, units: list[str | None], id_key: str | None, worker: int) -> None:
        """Some asks at once; the first may repeat an idempotency key."""
        commands = [Ask(unit, id_key if number == 0 else None) for number, unit in enumerate(units)]
        answers = self.workers.submit_together(self.key, commands, worker)
        for command, answer in zip(commands, answers, strict=True):
            self.expect_answer(command, answer)

    def expect_answer(self, command: Ask, answer: AskAnswer | BaseException) -> None:
        """The answer of the model, arm for arm."""
        try:
            reason, arm, number = self.model.ask(command.unit, command.idempotency_key, self.workers.now)
        except Refused as refused:
            expect_refusal(answer, refused)
            return
        assert isinstance(answer, AskAnswer), answer
        drawn = answer.assignment.draw if answer.assignment else answer.first.draw if answer.first else None
        assert (answer.reason, answer.arm.position, drawn) == (reason, arm, number)
        if answer.created and answer.assignment and not answer.replayed:
            self.ids.append(answer.assignment.id)
        assert len(self.ids) == len(self.model.draws)

    @rule(units=st.lists(st.sampled_from((*_UNITS, "zoe")), min_size=1, max_size=12), by_count=st.booleans(), worker=_workers)
    def ask_a_batch(self, units: list[str], by_count: bool, worker: int) -> None:  # noqa: FBT001 - drawn
        """A batch ask."""
        asked: list[str | None] = [None] * len(units) if by_count else list(units)
        [answers] = self.workers.submit_together(self.key, [AskMany(asked, by_count)], worker)
        if isinstance(answers, BaseException):
            refusal = "UnitRequired" if by_count and self.made.sticky else "ExperimentNotRunning"
            assert type(answers).__name__ == refusal
            assert refusal == "UnitRequired" or self.model.status in ("paused", "archived")
            return
        for unit, answer in zip(asked, answers, strict=True):
            self.expect_answer(Ask(unit), answer)

    # -- tells --------------------------------------------------------------------------------------------------

    def picked(self, pick: int) -> tuple[str, ModelDraw]:
        """One of the draws."""
        index = pick % len(self.ids)
        return self.ids[index], self.model.draws[index]

    @precondition(lambda self: self.model.draws)
    @rule(data=st.data(), worker=_workers)
    def tell_together(self, data: st.DataObject, worker: int) -> None:
        """Rewards, repeats, conflicts, corrections and voids at once, with an ask between them."""
        verbs = st.sampled_from(("reward", "reward", "reward", "correct", "void", "ask"))
        drawn = data.draw(st.lists(st.tuples(verbs, _numbers, self.rewards), min_size=1, max_size=8))
        known = len(self.ids)
        commands: list[Any] = []
        for verb, pick, reward in drawn:
            told = Tell(self.ids[pick % known], verb, None if verb == "void" else reward) if verb != "ask" else Ask("ann")  # type: ignore[arg-type]
            commands.append(told)
        answers = self.workers.submit_together(self.key, commands, worker)
        for (verb, pick, reward), command, answer in zip(drawn, commands, answers, strict=True):
            if verb == "ask":
                self.expect_answer(command, answer)
                continue
            draw = self.model.draws[pick % known]
            try:
                if verb == "void":
                    self.model.void(draw)
                else:
                    self.model.tell(draw, reward, correct=verb == "correct")
            except Refused as refused:
                expect_refusal(answer, refused)
                continue
            assert not isinstance(answer, BaseException), answer
            state = answer.assignment.state
            assert (state.status, state.reward, state.closed) == (draw.status, draw.reward, draw.settled)

    @precondition(lambda self: self.model.draws)
    @rule(data=st.data(), worker=_workers)
    def tell_a_batch(self, data: st.DataObject, worker: int) -> None:
        """A batch of rewards, by assignment and by unit, each with its own result."""
        drawn = data.draw(
            st.lists(st.tuples(st.none() | st.sampled_from(_UNITS), _numbers, self.rewards), min_size=1, max_size=8)
        )
        items = [
            RewardItem(assignment=None if unit else self.picked(pick)[0], unit=unit, reward=reward)
            for unit, pick, reward in drawn
        ]
        [results] = self.workers.submit_together(self.key, [TellMany(items)], worker)
        if self.model.status == "archived":
            assert type(results).__name__ == "ExperimentNotRunning"
            return
        for (unit, pick, reward), result in zip(drawn, results, strict=True):
            assert result.status == self.expected_tell(unit, pick, reward)

    def expected_tell(self, unit: str | None, pick: int, reward: float) -> str:
        """The result of one item."""
        if unit and not self.made.sticky:
            return "invalid"
        draw = self.model.current_of(unit) if unit else self.picked(pick)[1]
        if draw is None:
            return "not_found"
        try:
            return self.model.tell(draw, reward, correct=False)
        except Refused:
            return "conflict"

    @rule(data=st.data(), worker=_workers)
    def observe(self, data: st.DataObject, worker: int) -> None:
        """Observations without an ask, some of them named and repeated."""
        names = st.none() | st.sampled_from(("import-1", "import-2", "import-3"))
        drawn = data.draw(st.lists(st.tuples(_numbers, self.rewards, names), min_size=1, max_size=6))
        arms = len(self.model.arms)
        items = [ObservationItem(self.model.arms[pick % arms].key, reward, name) for pick, reward, name in drawn]
        [results] = self.workers.submit_together(self.key, [Observe(items)], worker)
        if self.model.status == "archived":
            assert type(results).__name__ == "ExperimentNotRunning"
            return
        for (pick, reward, name), result in zip(drawn, results, strict=True):
            assert result.status == self.model.observe(pick % arms, reward, name)

    @rule(data=st.data(), worker=_workers)
    def change_observations(self, data: st.DataObject, worker: int) -> None:
        """Corrections and voids of named observations at once, some of them again."""
        names = st.sampled_from(("import-1", "import-2", "import-3"))
        drawn = data.draw(st.lists(st.tuples(names, st.none() | self.rewards), min_size=1, max_size=4))
        commands = [ChangeObservation(name, void=reward is None, reward=reward) for name, reward in drawn]
        answers = self.workers.submit_together(self.key, commands, worker)
        for (name, reward), answer in zip(drawn, answers, strict=True):
            try:
                self.model.change_observation(name, reward)
            except Refused as refused:
                expect_refusal(answer, refused)
                continue
            assert not isinstance(answer, BaseException), answer
            assert answer.state.reward == reward

    # -- time ---------------------------------------------------------------------------------------------------

    @rule(seconds=st.sampled_from((0.0, 0.001, 3.0, 6.0, 30.0)))
    def wait(self, seconds: float) -> None:
        """Time passes; nothing happens before the sweep."""
        self.workers.now += round(seconds * _SECOND)

    @rule(worker=_workers, seconds=st.sampled_from((0.0, 6.0, 30.0)))
    def sweep(self, worker: int, seconds: float) -> None:
        """Time passes and a worker sweeps; the other one finds nothing left."""
        self.workers.now += round(seconds * _SECOND)
        self.workers.submit(self.key, Sweep(self.workers.now), worker)
        self.model.sweep(self.workers.now)
        assert self.workers.submit(self.key, Sweep(self.workers.now), 1 - worker) == 0

    # -- changes ------------------------------------------------------------------------------------------------

    def expect(self, command: Any, worker: int, happens: Any) -> None:  # noqa: ANN401 - any command, any callable
        """Both do it, or both refuse."""
        [answer] = self.workers.submit_together(self.key, [command], worker)
        try:
            happens()
        except Refused as refused:
            expect_refusal(answer, refused)
            return
        assert not isinstance(answer, BaseException), answer

    @rule(move=st.sampled_from(("pause", "resume", "resume")), worker=_workers)
    def pause_or_resume(self, move: Literal["pause", "resume"], worker: int) -> None:
        """A pause, or its end."""
        self.expect(LifecycleMove(move), worker, lambda: self.model.step(move))

    @rule(move=st.sampled_from(("conclude", "archive")), sure=st.integers(0, 19), pick=st.none() | _numbers, worker=_workers)
    def end(self, move: Literal["conclude", "archive"], sure: int, pick: int | None, worker: int) -> None:
        """Now and then an end: by name or by recommendation, then the archive."""
        if sure or (move == "archive" and self.model.status != "concluded"):
            return
        arm = None if pick is None or move == "archive" else pick % len(self.model.arms)
        name = None if arm is None else self.model.arms[arm].key
        self.expect(LifecycleMove(move, name), worker, lambda: self.model.step(move, arm))

    @precondition(lambda self: len(self.model.arms) < 6)
    @rule(least=st.sampled_from(_FLOORS), worker=_workers)
    def add_arm(self, least: float, worker: int) -> None:
        """One more arm."""
        name = f"arm-{len(self.model.arms)}"
        arm = Arm(0, name, name, None, least)
        self.expect(AddArm(arm), worker, lambda: self.model.add_arm(name, least))

    @rule(pick=_numbers, active=st.booleans(), worker=_workers)
    def switch_arm(self, pick: int, active: bool, worker: int) -> None:  # noqa: FBT001 - drawn
        """Disable or enable an arm."""
        position = pick % len(self.model.arms)
        command = ChangeArm(self.model.arms[position].key, {"status": "active" if active else "disabled"})
        self.expect(command, worker, lambda: self.model.change_arm(position, active=active))

    @rule(pick=_numbers, least=st.sampled_from((*_FLOORS, 0.6)), worker=_workers)
    def set_floor(self, pick: int, least: float, worker: int) -> None:
        """Another floor."""
        position = pick % len(self.model.arms)
        command = ChangeArm(self.model.arms[position].key, {"min_share": least})
        self.expect(command, worker, lambda: self.model.change_arm(position, least=least))

    @rule(data=st.data(), worker=_workers)
    def patch_expiry(self, data: st.DataObject, worker: int) -> None:
        """Another expiry for later draws."""
        expiry = data.draw(st.none() | st.tuples(st.sampled_from(_WINDOWS), self.expiries))

        def happens() -> None:
            self.model.require_changeable()
            self.made.expiry = expiry

        self.expect(Patch({"expiry": Expiry(*expiry) if expiry else None}), worker, happens)

    @rule()
    def restart(self) -> None:
        """All workers die and come back."""
        self.workers.restart()

    # -- the comparison -----------------------------------------------------------------------------------------

    @invariant()
    def every_number_is_equal(self) -> None:
        """Counts, means, variances, shares, targets and the recommendation."""
        look = self.workers.look(self.key)
        model = self.model
        ranked = model.ranking()
        assert (look.best.position if look.best else None) == (ranked[0] if ranked else None)
        assert (look.runner_up.position if look.runner_up else None) == (ranked[1] if len(ranked) > 1 else None)
        assert look.progress.experiment.status == model.status
        assert (look.concluded_arm.position if look.concluded_arm else None) == model.concluded_arm
        assert look.progress.draws == len(model.draws)
        assert len(look.standings) == len(model.arms)
        for position, shown in enumerate(look.standings):
            expected = model.standing(position)
            assert (shown.draws, shown.pending, shown.expired, shown.observations) == (
                expected.draws,
                expected.pending,
                expected.expired,
                expected.observations,
            )
            assert (shown.mean, shown.variance, shown.share) == (expected.mean, expected.variance, expected.share)
            assert shown.target_share == pytest.approx(expected.target_share, abs=1e-11)

    def teardown(self) -> None:
        """Every assignment is in its state, and replay finds no difference."""
        if hasattr(self, "model"):
            for number, draw in zip(self.ids, self.model.draws, strict=True):
                _, stored = self.workers.assignment(self.key, number)
                assert (stored.arm, stored.state.status, stored.state.reward) == (draw.arm, draw.status, draw.reward)
                assert (stored.epoch, stored.unit, stored.expires_at) == (draw.epoch, draw.unit, draw.expires_at)
            self.workers.replay(self.key)


@pytest.fixture(scope="module")
def workers(new_database: NewDatabase) -> Iterator[Workers]:
    """Two workers on a database of their own."""
    running = Workers(new_database())
    yield running
    running.close()


def test_the_service_follows_the_model_through_any_traffic(workers: Workers) -> None:
    """Random interleavings of everything that can happen leave service and model equal, and replay finds no difference."""

    class OnTheseWorkers(LiveTraffic):
        pass

    OnTheseWorkers.workers = workers
    run_state_machine_as_test(
        OnTheseWorkers,
        settings=settings(
            max_examples=_EXAMPLES,
            stateful_step_count=_STEPS,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=_PHASES,
        ),
    )
