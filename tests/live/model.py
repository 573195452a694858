"""The specification as a small program: what an experiment must know and choose, written without looking at the service.

Nothing is kept incrementally: counts, means and targets are worked out anew from the lists of draws and observations
whenever they are asked for, in exact fractions. Slow and plain on purpose.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import floor
from typing import Literal

import numpy as np

TIE = 1e-9
Refusal = str


class Refused(Exception):  # noqa: N818 - an answer, not an error
    """The service must refuse, with an exception of this name."""


@dataclass
class Settings:
    """What the experiment is made with."""

    policy: Literal["simple_tracking", "almost_tracking", "uniform"] = "simple_tracking"
    sufficiency_by: Literal["planned", "realised"] = "planned"
    batch_size: int | None = None
    seed: int = 7
    sharpness: float = 1.0
    guard: float = 0.0
    ties: Literal["limit", "paper"] = "paper"
    keeps_floors: bool = False
    reward: Literal["binary", "bounded", "real"] = "binary"
    minimize: bool = False
    sticky: bool = False
    expiry: tuple[float, float | None] | None = None
    """(seconds, reward or None = dropped)."""


@dataclass
class ModelArm:
    """An arm."""

    key: str
    floor: float = 0.0
    active: bool = True


@dataclass
class ModelDraw:
    """A draw and its state."""

    number: int
    arm: int
    unit: str | None
    reason: str
    epoch: int
    expires_at: int | None
    expiry_reward: float | None
    status: str = "pending"
    reward: float | None = None
    settled: bool = False
    """The sweep has seen its window close (or it has no numeric window)."""


@dataclass
class ModelObservation:
    """A reward without a draw; none any more once it is voided."""

    arm: int
    reward: float | None
    epoch: int


@dataclass
class Batch:
    """A running batch: how often each position was planned, what is left, and where the pass goes on."""

    planned: dict[int, int]
    left: dict[int, int]
    cursor: int = 0


@dataclass
class Standing:
    """What the recommendation must show of an arm."""

    draws: int
    pending: int
    expired: int
    observations: int
    mean: float | None
    variance: float | None
    share: float
    target_share: float


@dataclass
class Model:
    """One experiment."""

    settings: Settings
    arms: list[ModelArm]
    status: str = "running"
    last_move: str | None = None
    concluded_arm: int | None = None
    answers: dict[str, tuple[str | None, tuple[str, int, int | None]]] = field(default_factory=dict)
    """The unit and the first answer of each idempotency key."""
    draws: list[ModelDraw] = field(default_factory=list)
    observations: list[ModelObservation] = field(default_factory=list)
    named: dict[str, ModelObservation] = field(default_factory=dict)
    epoch: int = 1
    batches: int = 0
    batch: Batch | None = None
    batch_weights: list[dict[int, float]] = field(default_factory=list)
    """Of the batches since the last change of arms."""

    # -- what is known ------------------------------------------------------------------------------------------

    def active(self) -> list[int]:
        """Positions of the arms that may be drawn."""
        return [position for position, arm in enumerate(self.arms) if arm.active]

    def rewards(self, arm: int) -> list[float]:
        """Rewards of an arm, those that expiry put there included."""
        told = [one.reward for one in self.draws if one.arm == arm and one.status in ("rewarded", "expired")]
        told += [one.reward for one in self.observations if one.arm == arm]
        return [reward for reward in told if reward is not None]

    def pending(self, arm: int) -> list[ModelDraw]:
        """Draws of an arm that wait for their reward."""
        return [one for one in self.draws if one.arm == arm and one.status == "pending"]

    def known(self, arm: int) -> list[float]:
        """Rewards and, under a numeric expiry, pending draws as what silence would make them."""
        imputed = [one.expiry_reward for one in self.pending(arm) if one.expiry_reward is not None]
        return self.rewards(arm) + imputed

    def draw_count(self, arm: int) -> int:
        """Observations + pending."""
        return len(self.rewards(arm)) + len(self.pending(arm))

    def epoch_draws(self, arm: int) -> int:
        """Draws of the current epoch that still count."""
        drawn = [one for one in self.draws if one.arm == arm and one.epoch == self.epoch]
        counted = [one for one in drawn if one.status == "pending" or one.reward is not None]
        observed = [one for one in self.observations if one.arm == arm and one.epoch == self.epoch]
        return len(counted) + sum(one.reward is not None for one in observed)

    def mean(self, arm: int) -> float | None:
        """What the policy believes of an arm, rounded once."""
        values = self.known(arm)
        return float(sum(map(Fraction, values), Fraction(0)) / len(values)) if values else None

    def variance(self, arm: int) -> float | None:
        """Unbiased, exact until the one rounding."""
        values = [Fraction(value) for value in self.known(arm)]
        if len(values) < 2:
            return None
        mean = sum(values, Fraction(0)) / len(values)
        return float(sum(((value - mean) ** 2 for value in values), Fraction(0)) / (len(values) - 1))

    def ranking(self) -> list[int]:
        """Active arms with a reward or an expiry, best first."""
        sign = 1 if self.settings.minimize else -1
        ranked = [arm for arm in self.active() if self.rewards(arm)]
        return sorted(ranked, key=lambda arm: (sign * (self.mean(arm) or 0.0), -len(self.rewards(arm)), arm))

    def targets(self) -> dict[int, float]:
        """Rules 2 and 9: the target share of every active arm."""
        active = self.active()
        plain = {arm: 1 / len(active) for arm in active}
        means = {arm: self.mean(arm) for arm in active}
        known = {arm: Fraction(mean) for arm, mean in means.items() if mean is not None}
        if self.settings.policy != "uniform" and known:
            sign = -1 if self.settings.minimize else 1
            weights = h1_weights({arm: sign * mean for arm, mean in known.items()}, self.settings)
            plain |= {arm: weight * len(known) / len(active) for arm, weight in weights.items()}
        promised = sum(self.arms[arm].floor for arm in active)
        return {arm: self.arms[arm].floor + max(0.0, 1 - promised) * plain[arm] for arm in active}

    def standing(self, arm: int) -> Standing:
        """The row of an arm."""
        total = sum(self.draw_count(one) for one in range(len(self.arms)))
        rewards = self.rewards(arm)
        return Standing(
            draws=self.draw_count(arm),
            pending=len(self.pending(arm)),
            expired=sum(one.arm == arm and one.status == "expired" for one in self.draws),
            observations=len(rewards),
            mean=self.mean(arm),
            variance=self.variance(arm),
            share=self.draw_count(arm) / total if total else 0.0,
            target_share=self.targets().get(arm, 0.0),
        )

    # -- the policies -------------------------------------------------------------------------------------------

    def choose(self) -> tuple[int, str]:
        """The next arm and the reason."""
        active = self.active()
        undrawn = [arm for arm in active if self.draw_count(arm) == 0]
        owed = self.most_owed()
        if owed is not None:
            return owed, "warmup" if owed in undrawn else "track"
        if self.settings.policy == "almost_tracking":
            return self.choose_in_batch(undrawn)
        warmup, track = ("uniform", "uniform") if self.settings.policy == "uniform" else ("warmup", "track")
        if undrawn:
            return undrawn[0], warmup
        targets, shares = self.targets(), self.epoch_shares()
        scores = {arm: targets[arm] - shares[arm] for arm in active}
        largest = max(scores.values())
        return next(arm for arm in active if scores[arm] >= largest - TIE), track

    def most_owed(self) -> int | None:
        """The arm that is furthest behind its floor, if that is a whole draw or more and floors are kept."""
        counts = {arm: self.epoch_draws(arm) for arm in self.active()}
        following = sum(counts.values()) + 1
        debts = {arm: self.arms[arm].floor * following - count for arm, count in counts.items()}
        largest = max(debts.values())
        if not self.settings.keeps_floors or largest < 1:
            return None
        return next(arm for arm, debt in debts.items() if debt == largest)

    def epoch_shares(self) -> dict[int, float]:
        """Each active arm's part of this epoch's draws."""
        counts = {arm: self.epoch_draws(arm) for arm in self.active()}
        total = sum(counts.values())
        return {arm: count / total if total else 0.0 for arm, count in counts.items()}

    def choose_in_batch(self, undrawn: list[int]) -> tuple[int, str]:
        """Almost Tracking: from the running batch, or from a new one."""
        if self.batch is None or not any(self.batch.left.values()):
            self.plan_batch()
        batch = self.batch
        assert batch is not None
        beside = [arm for arm in undrawn if not batch.planned.get(arm)]
        if beside:
            return beside[0], "warmup"
        waiting = [arm for arm in sorted(batch.left) if batch.left[arm]]
        arm = next((arm for arm in waiting if arm >= batch.cursor), waiting[0])
        batch.left[arm] -= 1
        batch.cursor = arm + 1
        return arm, "batch"

    def plan_batch(self) -> None:
        """The next batch of Almost Tracking."""
        active = self.active()
        self.batches += 1
        size = max(self.settings.batch_size or 0, 2 * len(active))
        rng = np.random.default_rng([self.settings.seed, self.batches])
        floors = {arm: self.arms[arm].floor for arm in active}
        if self.batches == 1:
            promised = sum(floors.values())
            weights = {arm: floors[arm] + max(0.0, 1 - promised) / len(active) for arm in active}
        else:
            weights = self.insufficient_weights()
        if self.batches == 1 and not any(floors.values()):
            counts = dict.fromkeys(active, size // len(active))
        else:
            spread = size - sum(weight > 0 for weight in weights.values())
            counts = {arm: 1 + floor(weight * spread + 1e-9) if weight > 0 else 0 for arm, weight in weights.items()}
        missing = size - sum(counts.values())
        if missing > 0:
            p = np.array([weights[arm] for arm in active])
            for index in rng.choice(len(active), size=missing, p=p / p.sum()):
                counts[active[int(index)]] += 1
        self.batch_weights.append(weights)
        self.batch = Batch(planned=dict(counts), left=dict(counts))

    def insufficient_weights(self) -> dict[int, float]:
        """The targets of the arms that are behind; of all arms in the first batch after a change of arms."""
        targets, past = self.targets(), self.batch_weights
        if not past:
            return targets
        if self.settings.sufficiency_by == "planned":
            shares = {arm: sum(weights.get(arm, 0.0) for weights in past) / len(past) for arm in targets}
        else:
            shares = self.epoch_shares()
        behind = {arm for arm in targets if shares[arm] <= targets[arm] / 0.999 + 1e-9}
        total = sum(targets[arm] for arm in behind)
        return {arm: targets[arm] / total if arm in behind else 0.0 for arm in targets}

    # -- what can happen ----------------------------------------------------------------------------------------

    def ask(self, unit: str | None, id_key: str | None, now: int) -> tuple[str, int, int | None]:
        """(reason, arm, draw number) of an answer; the first one again, where the key was used before."""
        if id_key is None:
            return self.answer(unit, now)
        if id_key not in self.answers:
            self.answers[id_key] = unit, self.answer(unit, now)
        asked, first = self.answers[id_key]
        if asked != unit:
            raise Refused("IdempotencyKeyReused")
        return first

    def answer(self, unit: str | None, now: int) -> tuple[str, int, int | None]:
        """The answer to an ask that was not made before."""
        if self.status == "concluded":
            assert self.concluded_arm is not None
            return "concluded", self.concluded_arm, None
        if self.status != "running":
            raise Refused("ExperimentNotRunning")
        if self.settings.sticky:
            if unit is None:
                raise Refused("UnitRequired")
            own = self.current_of(unit)
            if own is not None and self.arms[own.arm].active:
                return "sticky", own.arm, own.number
        arm, reason = self.choose()
        expiry = self.settings.expiry
        draw = ModelDraw(
            number=len(self.draws) + 1,
            arm=arm,
            unit=unit,
            reason=reason,
            epoch=self.epoch,
            expires_at=None if expiry is None else now + round(expiry[0] * 1_000_000),
            expiry_reward=None if expiry is None else expiry[1],
            settled=expiry is None or expiry[1] is None,
        )
        self.draws.append(draw)
        return reason, arm, draw.number

    def current_of(self, unit: str) -> ModelDraw | None:
        """A sticky unit's assignment: its last draw."""
        return next((one for one in reversed(self.draws) if one.unit == unit), None)

    def require_open(self) -> None:
        """Rewards are taken while running, paused or concluded."""
        if self.status not in ("running", "paused", "concluded"):
            raise Refused("ExperimentNotRunning")

    def tell(self, draw: ModelDraw, reward: float, *, correct: bool) -> str:
        """`recorded` or `duplicate`."""
        self.require_open()
        if draw.status == "rewarded" and draw.reward == reward:
            return "duplicate"
        if not correct and draw.status in ("rewarded", "voided"):
            raise Refused("RewardConflict")
        draw.status, draw.reward = "rewarded", reward
        return "recorded"

    def void(self, draw: ModelDraw) -> None:
        """The draw leaves draws and observations."""
        self.require_open()
        draw.status, draw.reward = "voided", None

    def observe(self, arm: int, reward: float, name: str | None) -> str:
        """The result of one observation."""
        known = self.named.get(name) if name is not None else None
        if known is not None:
            return "duplicate" if known.reward is not None and (known.arm, known.reward) == (arm, reward) else "conflict"
        observation = ModelObservation(arm, reward, self.epoch)
        self.observations.append(observation)
        if name is not None:
            self.named[name] = observation
        return "recorded"

    def change_observation(self, name: str, reward: float | None) -> None:
        """Another reward for an observation, or none any more."""
        self.require_open()
        if name not in self.named:
            raise Refused("ObservationNotFound")
        self.named[name].reward = reward

    def sweep(self, now: int) -> None:
        """Windows that have closed by now."""
        if self.status == "archived":
            return
        for draw in self.draws:
            if draw.expires_at is None or draw.expires_at > now:
                continue
            if draw.status == "pending":
                draw.status, draw.reward, draw.settled = "expired", draw.expiry_reward, True
            elif draw.status == "rewarded":
                draw.settled = True

    def step(self, move: str, arm: int | None = None) -> None:
        """A step of the experiment's life."""
        allowed, status = {
            "pause": (("running",), "paused"),
            "resume": (("paused",), "running"),
            "conclude": (("running", "paused"), "concluded"),
            "archive": (("concluded",), "archived"),
        }[move]
        if (self.status, self.last_move) == (status, move) and arm in (None, self.concluded_arm):
            return
        if self.status not in allowed:
            raise Refused("IllegalTransition")
        if move == "conclude":
            if arm is None and not self.ranking():
                raise Refused("NoRecommendation")
            chosen = self.ranking()[0] if arm is None else arm
            if not self.arms[chosen].active:
                raise Refused("Conflict")
            self.concluded_arm = chosen
        self.status, self.last_move = status, move

    def require_changeable(self) -> None:
        """Archived is frozen."""
        if self.status == "archived":
            raise Refused("IllegalTransition")

    def add_arm(self, key: str, least: float) -> None:
        """One more arm."""
        self.require_changeable()
        if sum(arm.floor for arm in self.arms if arm.active) + least > 1 + 1e-9:
            raise Refused("InvalidValue")
        self.arms.append(ModelArm(key, least))
        self.new_epoch()

    def change_arm(self, position: int, *, active: bool | None = None, least: float | None = None) -> None:
        """Disable, enable, or another floor."""
        self.require_changeable()
        arm = self.arms[position]
        others = sum(one.floor for one in self.arms if one.active and one is not arm)
        own = arm.floor if least is None else least
        if (arm.active if active is None else active) and others + own > 1 + 1e-9:
            raise Refused("InvalidValue")
        if arm.active and active is False:
            if self.concluded_arm == position:
                raise Refused("ArmConcluded")
            if len(self.active()) == 1:
                raise Refused("LastActiveArm")
        before = arm.active, arm.floor
        if least is not None:
            arm.floor = least
        if active is not None:
            arm.active = active
        promises = self.settings.keeps_floors and arm.active and arm.floor != before[1]
        if arm.active != before[0] or promises:
            self.new_epoch()

    def new_epoch(self) -> None:
        """The set of active arms, or what is promised to one, changed: tracking counts from here on."""
        self.epoch += 1
        self.batch_weights = []
        if self.batch is not None:
            for position, arm in enumerate(self.arms):
                if not arm.active:
                    self.batch.planned.pop(position, None)
                    self.batch.left.pop(position, None)


def h1_weights(means: dict[int, Fraction], settings: Settings) -> dict[int, float]:
    """The weights with costs in exact fractions (powers and mixtures in floats)."""
    best = max(means.values())
    gaps = {arm: best - mean for arm, mean in means.items()}
    costs: dict[int, Fraction] = {}
    for arm, gap in gaps.items():
        if gap:
            costs[arm] = gap**2 * sum((1 / (gap + other) ** 2 for one, other in gaps.items() if one != arm), Fraction(0))
    if not costs:
        return dict.fromkeys(means, 1 / len(means))
    tied = len(means) - len(costs)
    of_best = 1 + Fraction(tied - 2, 4) if settings.ties == "limit" and tied > 1 else min(costs.values())
    plain = {arm: float(1 / costs.get(arm, of_best)) for arm in means}
    sharp = {arm: one**settings.sharpness for arm, one in plain.items()}
    whole, whole_sharp = sum(plain.values()), sum(sharp.values())
    return {arm: settings.guard * plain[arm] / whole + (1 - settings.guard) * sharp[arm] / whole_sharp for arm in means}
