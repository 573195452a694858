"""The data dictionary: every column of every export, its type and what it says. docs/data.md shows it, and a test compares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from service.application.reads.export import Exported

ColumnType: TypeAlias = Literal["integer", "number", "boolean", "text", "time", "json"]


class Column(NamedTuple):
    """One column of an export."""

    name: str
    type: ColumnType
    meaning: str
    nullable: bool = False
    foreign: bool = False
    """Its texts are the caller's own: a spreadsheet may take one for a formula."""
    few: bool = False
    """A few texts that come again and again: a format may number them."""


_SEQUENCE = "The number of the event in the experiment's sequence, ascending. `after=` goes on behind it."

COLUMNS: Mapping[Exported, tuple[Column, ...]] = {
    "assignments": (
        Column("sequence", "integer", _SEQUENCE),
        Column("draw", "integer", "The number of the draw: 1, 2, 3, …"),
        Column("id", "text", "The assignment's id, `asg_…`."),
        Column("arm", "text", "The key of the arm.", few=True),
        Column("unit", "text", "Who saw the arm, in the caller's own words. Personal data.", nullable=True, foreign=True),
        Column("reason", "text", "Why this arm: `warmup`, `track`, `batch`, `uniform`, …", few=True),
        Column("status", "text", "`pending`, `rewarded`, `expired` or `voided`, as of the snapshot.", few=True),
        Column("reward", "number", "The reward, also one that an expiry put there; empty if there is none.", nullable=True),
        Column(
            "closed", "boolean", "The window of a numeric expiry is over, or there was none: intervals rest on these rewards."
        ),
        Column("epoch", "integer", "Counts the sets of active arms; the draw was made under this one."),
        Column("created_at", "time", "When it was drawn."),
        Column("rewarded_at", "time", "When the last reward came from a caller.", nullable=True),
        Column("expires_at", "time", "When silence expires, or expired.", nullable=True),
        Column("expiry_reward", "number", "What silence counts as: in the means, a pending draw is this reward.", nullable=True),
    ),
    "observations": (
        Column("sequence", "integer", _SEQUENCE),
        Column("id", "text", "The id that it was told with.", nullable=True, foreign=True),
        Column("arm", "text", "The key of the arm.", few=True),
        Column("status", "text", "`rewarded` or `voided`, as of the snapshot.", few=True),
        Column("reward", "number", "The reward; empty if it was voided.", nullable=True),
        Column("epoch", "integer", "Counts the sets of active arms; the observation came under this one."),
        Column("observed_at", "time", "When it was told, which is not when it happened."),
    ),
    "events": (
        Column("sequence", "integer", _SEQUENCE),
        Column("kind", "text", "What happened: `draw`, `reward`, `observation`, `expiry`, `correction`, `patch`, …", few=True),
        Column("at", "time", "When it took effect."),
        Column("audited", "boolean", "It is an entry of the audit log; the rest is traffic."),
        Column("arm", "text", "The key of the arm that it is about.", nullable=True, few=True),
        Column("draw", "integer", "The number of the draw that it is about.", nullable=True),
        Column("reason", "text", "Of a draw: why this arm.", nullable=True, few=True),
        Column("epoch", "integer", "Counts the sets of active arms.", nullable=True),
        Column("status_before", "text", "The status of the assignment or observation before.", nullable=True, few=True),
        Column("reward_before", "number", "Its reward before.", nullable=True),
        Column("status_after", "text", "Its status since.", nullable=True, few=True),
        Column("reward_after", "number", "Its reward since.", nullable=True),
        Column("expires_at", "time", "Of a draw: when silence expires.", nullable=True),
        Column("expiry_reward", "number", "What silence counts as.", nullable=True),
        Column("actor", "text", "The id of the key that did it.", nullable=True, foreign=True),
        Column("details", "json", "What else the audit log says of it.", nullable=True),
    ),
    "history": (
        Column("sequence", "integer", "The version of the experiment at this point of its course: the same for all its arms."),
        Column("at", "time", "When that version came about."),
        Column("arm", "text", "The key of the arm.", few=True),
        Column("active", "boolean", "It was active then."),
        Column("leads", "boolean", "It was the one that the recommendation named."),
        Column("draws", "integer", "Its draws that counted: observations and pending ones."),
        Column("observations", "integer", "Its rewards."),
        Column("mean", "number", "Its mean, as the recommendation showed it.", nullable=True),
        Column("interval_low", "number", "Its interval, the lower end.", nullable=True),
        Column("interval_high", "number", "Its interval, the upper end.", nullable=True),
        Column("share", "number", "Its part of the draws."),
        Column("target_share", "number", "The part that the policy wanted it to have."),
    ),
}
