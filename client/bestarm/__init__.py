"""The Python client of bestarm: ask for an arm, tell its reward, look at the recommendation.

from bestarm import Client

client = Client("http://127.0.0.1:8000", timeout=0.2)
shown = client.assign("checkout-button", unit="user-42", fallback="control")
client.reward_later(shown, 1)
"""

from __future__ import annotations

from bestarm.assignment import Assignment, Observation, Result, Reward
from bestarm.client import AsyncClient, Client
from bestarm.counts import Counts
from bestarm.errors import (
    Conflict,
    DeadlineExceeded,
    Error,
    Invalid,
    MalformedAnswer,
    NotFound,
    Problem,
    Unauthorized,
    Unavailable,
    Unreachable,
)
from bestarm.experiment import Arm, Experiment, Recommendation, Standing
from bestarm.trial import Trial

__version__ = "0.1.0"
__all__ = [
    "Arm",
    "Assignment",
    "AsyncClient",
    "Client",
    "Conflict",
    "Counts",
    "DeadlineExceeded",
    "Error",
    "Experiment",
    "Invalid",
    "MalformedAnswer",
    "NotFound",
    "Observation",
    "Problem",
    "Recommendation",
    "Result",
    "Reward",
    "Standing",
    "Trial",
    "Unauthorized",
    "Unavailable",
    "Unreachable",
]
