"""The verdict: may the experiment stop, and why; from what is shown now and what was found before.

What was found is kept (`service/domain/findings.py`), so a verdict does not flicker: the tests hold at all looks together, and
once one has rejected, that it does so again at every later look is not needed.

**Separated** is that of all active arms but one it is shown that some active arm is better. That one is then the best: any other
arm has an arm above it. It is enough that every pair (a, b) that is rejected was tested at its level of `separation`, and the
chance of a false verdict is still at most alpha: a false one needs the truly best active arm to have been rejected against some
arm a, and those are the pairs that are paid for there. So findings may have been made at different looks, against different
leaders.

**Nothing worthwhile** is that no active arm can be better than one by more than what is worthwhile; **beats the control** that
the lift of an arm over the control lies above 0 as a whole, which ends an experiment that was told so (`conclude_when`).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from math import log
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from service.domain.findings import Finding
from service.domain.limits import MOST_FINDINGS_AT_ONCE
from service.inference.levels import arm_levels, pair_levels

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from service.domain import Arm, Experiment
    from service.domain.findings import FindingKind
    from service.inference.certainty import Certainty

VerdictState: TypeAlias = Literal["collecting", "leading", "decided", "concluded"]
VerdictReason: TypeAlias = Literal["separated", "nothing_worthwhile", "beats_control"]
# Below so many rewards an arm has no variance to judge by.
_ENOUGH_REWARDS = 2


@dataclass(frozen=True, slots=True)
class Verdict:
    """May it stop? Arms go by their positions."""

    state: VerdictState
    reason: VerdictReason | None
    arm: int | None
    """The arm to take, once that is decided; what is served, once it is concluded."""
    shown: int | None
    """The arm to take by what is shown, also where another one is served."""
    progress: float
    """The evidence of the pair that holds separation up, as a part of what it takes: 0 to 1."""
    held_up_by: int | None
    """The rival of that pair."""
    since: int | None
    """When what it rests on was found; None while it is not kept yet."""
    separated: bool
    separated_at: int | None
    decided: bool
    out: frozenset[int]
    """The active arms that are shown to be worse than another one."""
    harmful: frozenset[int]
    """Those that are shown to be worse than the control by more than what is worthwhile, or at all."""
    contradicted: frozenset[int]
    """Arms of which it was shown that one is better, and then the other: their means must have moved."""


def verdict(
    experiment: Experiment, arms: Sequence[Arm], sure: Certainty, leader: int | None, kept: Collection[Finding] = ()
) -> Verdict:
    """The verdict on an experiment whose leader is so sure, with the findings that hold."""
    active = frozenset(arm.position for arm in arms if arm.active)
    found = {finding.arm: finding for finding in kept if finding.kind == "separated" and finding.better in active}
    behind = {place for place, part in enumerate(sure.evidence) if part is not None and part >= 1.0}
    out = active & (found.keys() | behind)
    separated = len(active) > 1 and len(out) == len(active) - 1
    separated_at = max(found[place].at for place in out) if separated and out <= found.keys() else None
    contradicted = _contradicted(found, behind, leader)
    taken = None if contradicted else _taken(experiment, sure, leader, [finding for finding in kept if finding.better in active])
    if separated:
        taken = ("separated", next(iter(active - out)), separated_at)
    reason, arm, since = taken or (None, None, None)
    concluded = experiment.concluded_arm is not None
    progress, held_up_by = (1.0, None) if separated else _least(sure, active - out)
    return Verdict(
        state="concluded" if concluded else "decided" if reason else "leading" if _has_enough(sure, active) else "collecting",
        reason=reason,
        arm=experiment.concluded_arm if concluded else arm,
        shown=arm,
        progress=progress,
        held_up_by=held_up_by,
        since=since,
        separated=separated,
        separated_at=separated_at,
        decided=reason in ("separated", "nothing_worthwhile"),
        out=out,
        harmful=active & ({one.arm for one in kept if one.kind == "harmful"} | set(_harmful_now(experiment, sure))),
        contradicted=contradicted,
    )


_Taken: TypeAlias = "tuple[VerdictReason, int, int | None]"


def _taken(experiment: Experiment, sure: Certainty, leader: int | None, kept: Sequence[Finding]) -> _Taken | None:
    """Why an active arm may be taken although it is not separated, which arm, and since when."""
    rule = experiment.conclude_when
    if rule is not None and rule.beats_control:
        beating = [one for one in kept if one.kind == "beats_control"]
        if beating:
            better = next((one for one in beating if one.better == leader), beating[0])
            return "beats_control", better.better, min(one.at for one in beating)
        if leader is not None and leader in _beating_now(experiment, sure):
            return "beats_control", leader, None
    for one in kept:
        if one.kind == "nothing_worthwhile":
            return "nothing_worthwhile", one.better, one.at
    if leader is not None and sure.decided and not sure.separated:
        return "nothing_worthwhile", leader, None
    return None


def _least(sure: Certainty, contenders: frozenset[int]) -> tuple[float, int | None]:
    """The least evidence against a rival of the leader that is not out yet."""
    compared = [(part, place) for place in contenders if (part := sure.evidence[place]) is not None]
    return min(compared) if compared else (0.0, None)


def _has_enough(sure: Certainty, active: frozenset[int]) -> bool:
    return len(active) > 1 and all(sure.counts[place] >= _ENOUGH_REWARDS for place in active)


def _contradicted(found: dict[int, Finding], behind: set[int], leader: int | None) -> frozenset[int]:
    """The leader was found to be worse than an arm that it is now shown to be better than."""
    earlier = None if leader is None else found.get(leader)
    return frozenset({earlier.better, earlier.arm}) if earlier is not None and earlier.better in behind else frozenset()


def _harmful_now(experiment: Experiment, sure: Certainty) -> Iterator[int]:
    """Arms whose lift lies below what may be lost, as a whole."""
    margin = experiment.worthwhile or 0.0
    for place, lift in enumerate(sure.lifts):
        if lift is not None and lift.difference_interval is not None:
            low, high = lift.difference_interval
            if (high < -margin) if experiment.reward.sign > 0 else (low > margin):
                yield place


def _beating_now(experiment: Experiment, sure: Certainty) -> Iterator[int]:
    """Arms whose lift lies above 0 as a whole."""
    for place, lift in enumerate(sure.lifts):
        if lift is not None and lift.difference_interval is not None:
            low, high = lift.difference_interval
            if low > 0.0 if experiment.reward.sign > 0 else high < 0.0:
                yield place


def new_findings(
    experiment: Experiment, arms: Sequence[Arm], sure: Certainty, leader: int | None, kept: Collection[Finding]
) -> list[Finding]:
    """What is shown now and not kept yet, as much of it as is kept at once."""
    known = {(finding.kind, finding.arm) for finding in kept}
    unkept = (one for one in _shown(experiment, arms, sure, leader) if (one.kind, one.arm) not in known)
    return list(islice(unkept, MOST_FINDINGS_AT_ONCE))


def _shown(experiment: Experiment, arms: Sequence[Arm], sure: Certainty, leader: int | None) -> Iterator[Finding]:
    """All that is shown now."""
    if leader is None:
        return
    alpha, added = 1.0 - experiment.confidence, np.array([arm.added for arm in arms])
    levels = pair_levels(added, np.array([arm.active for arm in arms]), leader, alpha)
    rivals = [place for place, part in enumerate(sure.evidence) if part is not None]
    for place in rivals:
        if sure.evidence[place] == 1.0:
            yield _finding("separated", leader, place, float(levels[place]))
    if sure.decided and not sure.separated:
        yield _finding("nothing_worthwhile", leader, None, float(levels[rivals].min()))
    if experiment.control is not None:
        # A lift spends half of an arm's share on either side.
        sides = arm_levels(added, alpha) / 2.0
        for place in _harmful_now(experiment, sure):
            if arms[place].active:
                yield _finding("harmful", experiment.control, place, float(sides[place]))
        for place in _beating_now(experiment, sure):
            if arms[place].active:
                yield _finding("beats_control", place, experiment.control, float(sides[place]))


def _finding(kind: FindingKind, better: int, worse: int | None, level: float) -> Finding:
    """The tests are certain that their goal is attained and look no further, so that much is known of the evidence."""
    return Finding(kind, better, worse, evidence=-log(level), level=level)
