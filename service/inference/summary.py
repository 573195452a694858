"""The recommendation in a few plain sentences: may it stop, what is gained over the control, and what weakens the promise.

The first sentence is complete in itself: the page has it as its headline.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from service.domain import Goal, RewardKind
    from service.inference.lift import Lift
    from service.inference.verdict import VerdictReason, VerdictState

_FEW = 3
_POINTS = " percentage points"


@dataclass(frozen=True, slots=True)
class Facts:
    """What the sentences are made of. Arms go by the names people gave them."""

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
    state: VerdictState = "leading"
    reason: VerdictReason | None = None
    shown: str | None = None
    """The arm to take by what is shown; by findings that are kept, so it need not be the leader."""
    worthwhile: float | None = None
    """The smallest difference of means that matters."""
    control: str | None = None
    """What is live today."""
    lift: Lift | None = None
    """Over the control, of the arm that is served, or to be taken, or leads."""
    harmful: tuple[str, ...] = ()
    """Arms that are shown to be worse than the control."""
    held_up_by: str | None = None
    """The rival with the least evidence against it, while the leader is not separated."""
    progress: float = 0.0
    """That evidence as a part of what separation needs."""
    concluded: str | None = None
    """The arm that a concluded experiment serves."""
    behind: float | None = None
    """How far its mean is behind the leader's, not negative; None where it has none."""
    floors: tuple[str, ...] = ()
    """Active arms that get more traffic than the policy alone would give them, because it was promised."""
    disabled: tuple[str, ...] = ()
    dropped: int = 0
    """Draws that expired without a reward and left the draws."""
    imputed: int = 0
    """Draws that expired and count as the stated reward."""
    drift: tuple[str, ...] = ()
    imported: int = 0
    """Of the observations, those that came without an ask."""

    @property
    def subject(self) -> str | None:
        """The arm that is spoken of: what is served, or to be taken, or leads."""
        return self.concluded or self.shown or self.leader

    @property
    def sure(self) -> str:
        """Such as: 95% confidence."""
        return f"{self.confidence * 100:g}% confidence"


def summary(facts: Facts) -> str:
    """What may be done, the gain over the control, the lead, and then what qualifies them."""
    sentences = [
        _headline(facts),
        _against_control(facts),
        _harmful(facts),
        _shown_though_concluded(facts),
        _lead(facts),
        _waiting(facts),
        _imported(facts),
        _floors(facts),
        _disabled(facts),
        *_lost(facts),
        _drift(facts),
    ]
    return " ".join(f"{sentence}." for sentence in sentences if sentence)


def _headline(facts: Facts) -> str:
    """May it stop?"""
    if facts.concluded is not None:
        return f"The experiment is concluded and serves {facts.concluded}{_standing_of_served(facts)}"
    if facts.reason is not None:
        return f"You may stop with {facts.shown}: {_what_is_shown(facts, facts.reason, 'it')}"
    if facts.state == "leading" and facts.leader is not None:
        return f"Not yet: {facts.leader} leads, with {int(100 * facts.progress)}% of the evidence that a verdict takes"
    return _too_little(facts)


def _too_little(facts: Facts) -> str:
    """What is missing."""
    if facts.leader is None:
        return "No reward has arrived yet, so no arm can be recommended"
    if facts.active_arms == 1:
        return f"{facts.leader} is the only active arm, {_after(facts)}, so there is nothing to compare"
    if facts.runner_up is None:
        return f"Too little to say yet: {facts.leader} is the only arm with rewards, {_after(facts)}"
    return "Too little to say yet: not every active arm has two rewards"


def _standing_of_served(facts: Facts) -> str:
    """How what is served stands to the best mean."""
    if facts.behind is None or facts.leader is None:
        return ""
    if facts.concluded == facts.leader:
        return ", the arm with the best mean"
    if facts.behind == 0.0:
        return f", whose mean is level with {facts.leader}'s, the best"
    return f", whose mean is {_amount(facts.behind, facts.kind)} behind {facts.leader}'s, the best"


def _what_is_shown(facts: Facts, reason: VerdictReason, arm: str) -> str:
    """What an arm may be taken for."""
    if reason == "beats_control":
        return f"{arm} is better than {facts.control}, the control, with {facts.sure}"
    if reason == "nothing_worthwhile" and facts.worthwhile is not None:
        return f"no other active arm is better by more than {_amount(facts.worthwhile, facts.kind)}, with {facts.sure}"
    return f"{arm} is better than every other active arm, with {facts.sure}"


def _shown_though_concluded(facts: Facts) -> str:
    """What was shown when it was concluded, or that nothing was."""
    if facts.concluded is None or facts.leader is None or facts.active_arms == 1:
        return ""
    if facts.reason is None or facts.shown is None:
        return f"No arm is shown to be better than every other active arm, with {facts.sure}"
    if facts.reason == "nothing_worthwhile":
        return f"{facts.shown} could be taken: {_what_is_shown(facts, facts.reason, 'it')}"
    return f"It is shown that {_what_is_shown(facts, facts.reason, facts.shown)}"


def _against_control(facts: Facts) -> str:
    """What is gained over what is live today."""
    if facts.control is None or facts.leader is None or facts.active_arms == 1:
        return ""
    if facts.subject == facts.control:
        return f"{facts.control} is the control, what is live today"
    if facts.lift is None:
        return ""
    gain = facts.lift.difference if facts.goal == "maximize" else -facts.lift.difference
    by = f" by {_amount(abs(gain), facts.kind)}" if gain else ""
    word = "better" if gain > 0 else "worse" if gain else "level"
    against = f"Against {facts.control}, the control, {facts.subject} is {word}{by}"
    if facts.lift.difference_interval is None:
        return against
    low, high = (_signed(end, facts.kind) for end in facts.lift.difference_interval)
    low = low.removesuffix(_POINTS) if high.endswith(_POINTS) else low
    return f"{against} (the difference lies between {low} and {high}, with {facts.sure})"


def _harmful(facts: Facts) -> str:
    """Which arms should not go on."""
    if not facts.harmful:
        return ""
    by = f", by more than {_amount(facts.worthwhile, facts.kind)}" if facts.worthwhile is not None else ""
    return f"{_names(facts.harmful)} {_are(facts.harmful)} shown to be worse than {facts.control}, the control{by}"


def _lead(facts: Facts) -> str:
    """By how much it leads whom, after how many rewards; who holds the verdict up."""
    if facts.concluded is not None or facts.runner_up is None or facts.gap is None:
        return ""
    if facts.gap == 0.0:
        return f"{facts.leader} and {facts.runner_up} are level {_after(facts)}{_held_up(facts)}"
    lower = " (lower is better)" if facts.goal == "minimize" else ""
    now = " now" if facts.shown not in (None, facts.leader) else ""
    return (
        f"{facts.leader} leads {facts.runner_up}{now} by {_amount(facts.gap, facts.kind)}{lower} {_after(facts)}{_held_up(facts)}"
    )


def _after(facts: Facts) -> str:
    return f"after {_number(facts.observations)} {_plural(facts.observations, 'reward')}"


def _held_up(facts: Facts) -> str:
    """Whom there is the least evidence against, where that is not the runner-up."""
    if facts.state != "leading" or facts.held_up_by in (None, facts.runner_up):
        return ""
    return f"; the rival that holds the verdict up is {facts.held_up_by}"


def _waiting(facts: Facts) -> str:
    """What is still pending; it cannot take back what was shown."""
    if not facts.pending:
        return ""
    rewards = f"{_number(facts.pending)} {_plural(facts.pending, 'reward')}"
    if facts.reason is None and facts.concluded is None:
        return f"{rewards} still pending may change this"
    return f"{rewards} {'is' if facts.pending == 1 else 'are'} still pending"


def _imported(facts: Facts) -> str:
    """What was not learnt by asking."""
    if not facts.imported:
        return ""
    rewards = f"{_number(facts.observations)} {_plural(facts.observations, 'reward')}"
    were = "was" if facts.imported == 1 else "were"
    return f"{_number(facts.imported)} of the {rewards} {were} imported (told without an ask)"


def _floors(facts: Facts) -> str:
    """What a floor does."""
    if not facts.floors or facts.concluded is not None:
        return ""
    verb = "keeps" if len(facts.floors) == 1 else "keep"
    return (
        f"{_names(facts.floors)} {verb} a promised share of the traffic, so the search is slower while the intervals still hold"
    )


def _disabled(facts: Facts) -> str:
    """What a disabled arm does."""
    if not facts.disabled:
        return ""
    are = f"{_names(facts.disabled)} {_are(facts.disabled)}"
    return f"{are} disabled and not compared, so the promise is about the active arms only"


def _lost(facts: Facts) -> list[str]:
    """What silence does."""
    sentences = []
    if facts.dropped:
        lost = f"{_number(facts.dropped)} {_plural(facts.dropped, 'draw')} expired without a reward and left the count"
        sentences.append(f"{lost}, so the promise holds only if silence does not depend on the reward")
    if facts.imputed:
        silent = f"{_number(facts.imputed)} silent {_plural(facts.imputed, 'draw')}"
        sentences.append(f"{silent} count as the reward stated for silence")
    return sentences


def _drift(facts: Facts) -> str:
    """What a moving mean does."""
    if not facts.drift:
        return ""
    verb = "has" if len(facts.drift) == 1 else "have"
    return f"The mean of {_names(facts.drift)} {verb} changed over time, so the intervals describe a mixture of then and now"


def _amount(gap: float, kind: RewardKind) -> str:
    """A difference of means for people: percentage points for shares, three digits otherwise."""
    if kind == "binary":
        points = f"{gap * 100:.3g}" if gap >= 0.0001 else f"{gap * 100:.1g}"  # noqa: PLR2004 - below a hundredth of a point
        return f"{points} percentage point" if points == "1" else points + _POINTS
    return f"{gap:,.3g}" if gap < 1000 or gap >= 1e15 else f"{gap:,.0f}"  # noqa: PLR2004 - digits people read


def _signed(difference: float, kind: RewardKind) -> str:
    """A difference with its sign."""
    sign = "-" if difference < 0 else "+"
    return sign + _amount(abs(difference), kind)


def _number(count: int) -> str:
    return f"{count:,}"


def _plural(count: int, noun: str) -> str:
    return noun if count == 1 else f"{noun}s"


def _are(names: tuple[str, ...]) -> str:
    return "is" if len(names) == 1 else "are"


def _names(names: tuple[str, ...]) -> str:
    """Such as: A; A and B; A, B and 7 others."""
    if len(names) == 1:
        return names[0]
    if len(names) <= _FEW:
        return f"{', '.join(names[:-1])} and {names[-1]}"
    return f"{', '.join(names[: _FEW - 1])} and {len(names) - _FEW + 1} others"
