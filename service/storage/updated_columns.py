"""Which columns an update writes: as few as the change at hand moves."""

from __future__ import annotations

# The settings of an experiment.
SETTINGS = (
    "name",
    "description",
    "policy",
    "reward",
    "expiry",
    "sticky",
    "confidence",
    "conclude_when",
    "status",
    "concluded_arm",
)
# Those that were added later, which stand at the end of the row.
LATER_SETTINGS = ("tags", "owner", "last_move", "worthwhile", "control", "ofrep_bulk", "pruned_at")


PROGRESS = (
    "version",
    "as_of",
    "draws",
    "epoch",
    "batch",
    "plan_cursor",
    "plan_averaged",
    "may_expire",
    "observed",
    "snapshot_at",
    "snapshot_stride",
    "uncounted",
)


# One that was added later, which stands at the end of the row. No draw changes it.
LATER_PROGRESS = ("imported",)


# Those of them that plain draws change.
DRAWING = ("version", "as_of", "draws", "may_expire", "uncounted")


ARM_DEFINITION = ("name", "value", "min_share", "status")


ARM_COUNTS = (
    "changed",
    "pending",
    "expired",
    "epoch_draws",
    "observations",
    "reward_sum",
    "reward_squares",
    "imputed",
    "imputed_sum",
    "imputed_squares",
    "matured",
    "matured_sum",
    "matured_squares",
    "earlier",
    "earlier_sum",
    "earlier_squares",
    "planned",
    "plan_left",
    "plan_weight_sum",
)


# Those of them that a plain draw changes.
ARM_DRAWS = ("changed", "pending", "epoch_draws")


OBSERVATION_STATE = ("reward", "status", "changed")


ASSIGNMENT_STATE = ("status", "reward", "closed", "rewarded_at", "due_at")
# Those of the counts that a draw changes under a numeric expiry, where it counts as a reward for the time being.
ARM_IMPUTED = (*ARM_DRAWS, "imputed", "imputed_sum", "imputed_squares")
