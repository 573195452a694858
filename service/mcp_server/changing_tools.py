"""The tools that change something; they are there only where changes are allowed.

What visitors notice, starting and concluding, is done only if `confirm` repeats the experiment's key; otherwise the tool says
what would happen.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from service.domain.limits import KEY_PATTERN
from service.mcp_server.api_calls import ApiCalls, path_of
from service.mcp_server.output_bounds import bounded
from service.mcp_server.reading_tools import ExperimentKey
from service.web.api.request_schemas import ExperimentIn

ArmKey = Annotated[str, Field(pattern=f"^{KEY_PATTERN}$", description="The key of the arm to serve from now on.")]
Confirmation = Annotated[str, Field(description="The experiment's key once more, after a person has agreed.")]


class DraftIn(ExperimentIn):
    """A new experiment that is not started."""

    status: Literal["draft"] = "draft"


class ChangingTools:
    """What a key with the scopes `read` and `manage` is good for."""

    def __init__(self, api: ApiCalls) -> None:
        self._api = api

    async def create_draft(self, experiment: DraftIn) -> dict[str, Any]:
        """Create an experiment as a draft: nobody sees it before it is started."""
        wanted = experiment.model_dump(exclude_unset=True) | {"status": "draft"}
        return bounded(await self._api.post("/v1/experiments", wanted))

    async def pause_experiment(self, experiment: ExperimentKey) -> dict[str, Any]:
        """Pause a running experiment: no asks are answered any more, rewards still count. It can be started again."""
        return bounded(await self._api.post(path_of(experiment, "/pause")))

    async def start_experiment(self, experiment: ExperimentKey, confirm: Confirmation | None = None) -> dict[str, Any]:
        """Start a draft, or a paused experiment again: live traffic is split from then on.

        Without `confirm` nothing is done, and the answer says what would happen: show it to a person and ask.
        """
        now = await self._api.get(path_of(experiment))
        if confirm != experiment:
            arms = sum(arm["status"] == "active" for arm in now["arms"])
            effect = f"{experiment!r} is {now['status']}. Once started, it splits live traffic among {arms:,} arms."
            return _question(effect, {"confirm": experiment})
        move = "resume" if now["status"] == "paused" else "start"
        return bounded(await self._api.post(path_of(experiment, f"/{move}")))

    async def conclude_experiment(
        self, experiment: ExperimentKey, arm: ArmKey | None = None, confirm: Confirmation | None = None
    ) -> dict[str, Any]:
        """End an experiment: everybody gets one arm from then on.

        Without `confirm`, or without naming the arm, nothing is done, and the answer says what would happen, with which arm and
        how sure that is: show it to a person and ask.
        """
        if arm is not None and confirm == experiment:
            return bounded(await self._api.post(path_of(experiment, "/conclude"), {"arm": arm}))
        found = await self._api.get(path_of(experiment, "/recommendation"))
        taken = arm or found["verdict"]["arm"] or found["arm"]
        if taken is None:
            return {"done": False, "would": "There is no reward yet to conclude by. Name the arm to conclude with it anyway."}
        effect = f"{experiment!r} would end, and all visitors would get the arm {taken!r}. {_doubt(found, taken)}".rstrip()
        return _question(effect, {"arm": taken, "confirm": experiment}) | {
            "summary": found["summary"],
            "verdict": found["verdict"],
        }


def _doubt(found: dict[str, Any], taken: str) -> str:
    verdict = found["verdict"]
    if verdict["state"] not in {"decided", "concluded"}:
        return "Nothing is decided yet: this arm may not be the best."
    return "" if taken == verdict["arm"] else f"The verdict is for another arm, {verdict['arm']!r}."


def _question(effect: str, arguments: dict[str, str]) -> dict[str, Any]:
    return {"done": False, "would": effect, "to_do_it": "Ask a person. If they agree, call again with:", "arguments": arguments}
