"""An experiment's assignments in a pandas DataFrame, for an analysis of your own. Run it in cells (`# %%`), or as a program.

It reads `GET /v1/experiments/{key}/export`: every draw, streamed as of one version. An answer that breaks off in the middle is
noticed, and gone on with after the last whole row.

    python -m examples.assignments_to_pandas checkout-button
"""

# %%
from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

import httpx
import pandas as pd

_TRIES = 5
_PAUSE_SECONDS = 1.0
_TIMES = ("created_at", "rewarded_at", "expires_at")


# %% Read
def rows(client: httpx.Client, experiment: str, **filters: str) -> list[dict[str, Any]]:
    """Every draw once, in order; `filters` are those of the route: `arm`, `since`, `until`, `after`.

    A connection that breaks five times in a row without a row is given up.
    """
    found: list[dict[str, Any]] = []
    asked: dict[str, Any] = {"of": "assignments", "format": "jsonl", **filters}
    tries = 0
    while True:
        had = len(found)
        try:
            with client.stream("GET", f"/v1/experiments/{experiment}/export", params=asked) as answer:
                answer.raise_for_status()
                found.extend(map(json.loads, answer.iter_lines()))
        except httpx.TransportError:  # no connection, one that was reset, or an answer that was cut off before its end
            tries = 1 if len(found) > had else tries + 1
            if tries == _TRIES:
                raise
            time.sleep(_PAUSE_SECONDS)
            asked["after"] = found[-1]["sequence"] if found else asked.get("after", 0)
        else:
            return found


def assignments(client: httpx.Client, experiment: str, **filters: str) -> pd.DataFrame:
    """One row a draw, with times as times."""
    columns = ["draw", "id", "arm", "unit", "reason", "status", "reward", *_TIMES]
    frame = pd.DataFrame(rows(client, experiment, **filters), columns=columns).set_index("draw")
    for column in _TIMES:
        frame[column] = pd.to_datetime(frame[column], utc=True, format="ISO8601")
    return frame


# %% Analyse
def by_arm(frame: pd.DataFrame) -> pd.DataFrame:
    """Draws, rewards, mean reward and the median delay of each arm.

    These means are for orientation. For intervals and verdicts take the recommendation's: the arms were drawn adaptively and
    looked at while they ran, which a t-test over this table knows nothing of.
    """
    frame = frame[frame["status"] != "voided"].assign(delay=(frame["rewarded_at"] - frame["created_at"]).dt.total_seconds())
    return frame.groupby("arm").agg(
        draws=("id", "count"), rewards=("reward", "count"), mean=("reward", "mean"), delay=("delay", "median")
    )


# %% Run
def main() -> None:
    """The table of one experiment."""
    key = os.environ.get("BESTARM_KEY")
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    with httpx.Client(base_url=os.environ.get("BESTARM_URL", "http://127.0.0.1:8000"), headers=headers) as client:
        frame = assignments(client, sys.argv[1])
    print(by_arm(frame).to_string())


if __name__ == "__main__":
    main()
