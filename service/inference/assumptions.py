"""What the numbers of a recommendation assume beyond the model, as plain sentences for `assumes`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from service.domain import Expiry, RewardSpec

WAITS_FOR_EVER = "Rewards that have not arrived are left out: whether and when a reward arrives must not depend on its value."
SILENCE_DROPPED = "Draws that expire without a reward are left out: silence must not depend on what the reward would have been."
MATURED_ONLY = (
    "Intervals, separation and the error estimate use only draws whose reward window has closed, so a mean, which also "
    "counts open draws, may lie outside its interval."
)
HAND_PICKED = "Some rewards were told without an ask: their arm must have been chosen without knowing their value."
GAUSSIAN = (
    "Intervals and separation are exact for normally distributed rewards; for other distributions they are approximate, "
    "and need many rewards where the rewards are skewed."
)
FLOOR_ACTIVE = (
    "A least share of traffic is promised to some arms: the intervals hold, but the search is slower than the policy alone "
    "would be."
)
STABLE_MEANS = (
    "An arm's mean has changed over time: the intervals are about the average over the time of the experiment, not about now."
)


def assumptions(reward: RewardSpec, *, expiry: Expiry | None, observed: bool, floors: bool, drift: bool) -> list[str]:
    """The assumptions that apply: how silence is treated, imported rewards, the distribution, floors, moving means."""
    stated = [WAITS_FOR_EVER]
    if expiry is not None:
        stated = [SILENCE_DROPPED if expiry.reward is None else MATURED_ONLY]
    if observed:
        stated.append(HAND_PICKED)
    if reward.kind == "real":
        stated.append(GAUSSIAN)
    if floors:
        stated.append(FLOOR_ACTIVE)
    if drift:
        stated.append(STABLE_MEANS)
    return stated
