"""The recommendation in one plain sentence: which arm, by how much, how sure, what is pending, and what weakens the promise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from service.domain import Goal, RewardKind
    from service.inference.lift import Lift

_FEW = 3


@dataclass(frozen=True, slots=True)
class Facts:
    """What the sentence is made of. Arms go by the names people gave them."""

    leader: str | None
    """The empirically best active arm; None while there is no reward."""
    runner_up: str | None = None
    gap: float | None = None
    """How far the leader's mean is better than the runner-up's, in reward units, not negative."""
    kind: RewardKind = "binary"
    goal: Goal = "maximize"
    active_arms: int = 2
    observations: int = 0
    pending: int = 0
    confidence: float = 0.95
    separated: bool = False
    taken: str | None = None
    """The arm to take, once that is decided; by findings that are kept, so it need not be the leader."""
    decided: bool = False
    worthwhile: float | None = None
    """The smallest difference of means that matters."""
    control: str | None = None
    """What is live today."""
    lift: Lift | None = None
    """Of the leader over the control."""
    harmful: tuple[str, ...] = ()
    """Arms that are shown to be worse than the control."""
    held_up_by: str | None = None
    """The rival with the least evidence against it, while the leader is not separated."""
    progress: float | None = None
    """That evidence as a part of what separation needs."""
    error_estimate: float | None = None
    concluded: str | None = None
    """The arm that a concluded experiment serves."""
    floors: tuple[str, ...] = ()
    """Active arms with a promised least share of traffic."""
    disabled: tuple[str, ...] = ()
    dropped: int = 0
    """Draws that expired without a reward and left the draws."""
    imputed: int = 0
    """Draws that expired and count as the stated reward."""
    drift: tuple[str, ...] = ()


def summary(facts: Facts) -> str:
    """One sentence, its clauses separated by semicolons."""
    clauses = [
        _verdict(facts),
        _against_control(facts),
        _harmful(facts),
        _conclusion(facts),
        _waiting(facts),
        _floors(facts),
        _disabled(facts),
        _lost(facts),
        _drift(facts),
    ]
    return "; ".join(clause for clause in clauses if clause) + "."


def _verdict(facts: Facts) -> str:
    """Which arm, by how much, how sure."""
    if facts.leader is None:
        return "No reward has arrived yet, so no arm can be recommended"
    after = f"after {_number(facts.observations)} {_plural(facts.observations, 'reward')}"
    if facts.active_arms == 1:
        return f"{facts.leader} is the only active arm {after}, so there is nothing to compare"
    if facts.runner_up is None or facts.gap is None:
        return f"{facts.leader} is the only arm with rewards, {after}, so nothing is settled"
    sure = f"{facts.confidence * 100:g}% confidence"
    enough = _good_enough(facts, sure)
    if facts.gap == 0.0:
        level = f"{facts.leader} and {facts.runner_up} are level {after}"
        return f"{level}, {enough or f'so nothing is settled at {sure}'}{_chance(facts)}"
    lead = f"{facts.leader} leads {facts.runner_up} by {_amount(facts.gap, facts.kind)}"
    if facts.goal == "minimize":
        lead += " (lower is better)"
    if facts.separated:
        return f"{lead} {after}{_separated(facts, sure)}{_chance(facts)}"
    unsettled = f"but is not yet separated from the others at {sure}{_held_up(facts)}"
    return f"{lead} {after}, {enough or unsettled}{_chance(facts)}"


def _separated(facts: Facts, sure: str) -> str:
    """What was shown, now or before; then another arm may have come to lead."""
    if facts.taken in (None, facts.leader):
        return f" and is better than every other active arm with {sure}, however often you look"
    return f", although {facts.taken} was shown to be better than every other active arm with {sure}"


def _against_control(facts: Facts) -> str:
    """What the leader gains over what is live today."""
    if facts.control is None or facts.leader is None or facts.active_arms == 1:
        return ""
    if facts.leader == facts.control:
        return f"{facts.control}, which is live today, is the control itself"
    if facts.lift is None:
        return ""
    gain = facts.lift.difference
    better = gain > 0 if facts.goal == "maximize" else gain < 0
    words = f"against {facts.control}, the control, {facts.leader} is {'better' if better else 'not better'}"
    if better:
        words += f" by {_amount(abs(gain), facts.kind)}"
    if facts.lift.difference_interval is None:
        return words
    low, high = facts.lift.difference_interval
    range_ = f"between {_signed(low, facts.kind)} and {_signed(high, facts.kind)}"
    return f"{words} ({range_} at {facts.confidence * 100:g}% confidence)"


def _harmful(facts: Facts) -> str:
    """Which arms should not go on."""
    if not facts.harmful:
        return ""
    return f"{_names(facts.harmful)} {'is' if len(facts.harmful) == 1 else 'are'} shown to be worse than {facts.control}"


def _good_enough(facts: Facts, sure: str) -> str:
    """What can be said of a leader that is decided without being separated."""
    if not facts.decided or facts.worthwhile is None:
        return ""
    most = _amount(facts.worthwhile, facts.kind)
    return f"and no other active arm is better than {facts.leader} by more than {most} with {sure}, however often you look"


def _held_up(facts: Facts) -> str:
    """How far it is, and because of whom."""
    if facts.held_up_by is None or facts.progress is None:
        return ""
    return f": the evidence against {facts.held_up_by} is {int(100 * facts.progress)}% of what that takes"


def _chance(facts: Facts) -> str:
    """The error estimate in brackets."""
    if facts.error_estimate is None:
        return ""
    return f" (estimated chance that another arm is better: {_percent(facts.error_estimate)})"


def _conclusion(facts: Facts) -> str:
    """What is served after the end."""
    if facts.concluded is None:
        return ""
    if facts.concluded == facts.leader:
        return f"the experiment is concluded and serves {facts.concluded}"
    return f"the experiment is concluded and serves {facts.concluded}, which is not the arm that leads now"


def _waiting(facts: Facts) -> str:
    """What is still pending."""
    if not facts.pending:
        return ""
    return f"{_number(facts.pending)} {_plural(facts.pending, 'reward')} still pending may change this"


def _floors(facts: Facts) -> str:
    """What a floor does."""
    if not facts.floors:
        return ""
    verb = "keeps" if len(facts.floors) == 1 else "keep"
    return (
        f"{_names(facts.floors)} {verb} a promised share of the traffic, so the search is slower while the intervals still hold"
    )


def _disabled(facts: Facts) -> str:
    """What a disabled arm does."""
    if not facts.disabled:
        return ""
    verb = "is" if len(facts.disabled) == 1 else "are"
    return f"{_names(facts.disabled)} {verb} disabled and not compared, so the promise is about the active arms only"


def _lost(facts: Facts) -> str:
    """What silence does."""
    parts = []
    if facts.dropped:
        lost = f"{_number(facts.dropped)} {_plural(facts.dropped, 'draw')} expired without a reward and left the count"
        parts.append(f"{lost}, so the promise holds only if silence does not depend on the reward")
    if facts.imputed:
        parts.append(f"{_number(facts.imputed)} silent {_plural(facts.imputed, 'draw')} count as the reward stated for silence")
    return "; ".join(parts)


def _drift(facts: Facts) -> str:
    """What a moving mean does."""
    if not facts.drift:
        return ""
    verb = "has" if len(facts.drift) == 1 else "have"
    return f"the mean of {_names(facts.drift)} {verb} changed over time, so the intervals describe a mixture of then and now"


def _amount(gap: float, kind: RewardKind) -> str:
    """A difference of means for people: percentage points for shares, three digits otherwise."""
    if kind == "binary":
        points = f"{gap * 100:.3g}" if gap >= 0.0001 else f"{gap * 100:.1g}"  # noqa: PLR2004 - below a hundredth of a point
        return f"{points} percentage points"
    return f"{gap:,.3g}" if gap < 1000 or gap >= 1e15 else f"{gap:,.0f}"  # noqa: PLR2004 - digits people read


def _signed(difference: float, kind: RewardKind) -> str:
    """A difference with its sign."""
    sign = "-" if difference < 0 else "+"
    return sign + _amount(abs(difference), kind)


def _percent(share: float) -> str:
    """A probability for people."""
    if share < 0.001:  # noqa: PLR2004 - smaller digits say nothing
        return "less than 0.1%"
    return f"{share * 100:.2g}%" if share < 0.1 else f"{share * 100:.0f}%"  # noqa: PLR2004 - one digit more for small ones


def _number(count: int) -> str:
    return f"{count:,}"


def _plural(count: int, noun: str) -> str:
    return noun if count == 1 else f"{noun}s"


def _names(names: tuple[str, ...]) -> str:
    """Such as: A; A and B; A, B and 7 others."""
    if len(names) == 1:
        return names[0]
    if len(names) <= _FEW:
        return f"{', '.join(names[:-1])} and {names[-1]}"
    return f"{', '.join(names[: _FEW - 1])} and {len(names) - _FEW + 1} others"
