"""The tools that change nothing. Their docstrings are what the model reads."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from service.domain.limits import KEY_PATTERN
from service.mcp_server.api_calls import ApiCalls, path_of
from service.mcp_server.output_bounds import bounded
from service.web.dashboard.plan_routes import PlanIn

ExperimentKey = Annotated[str, Field(pattern=f"^{KEY_PATTERN}$", description="The key of the experiment.")]
ArmsFrom = Annotated[int, Field(ge=0, description="The position of the first arm to show, where there are many.")]
Status = Literal["draft", "running", "paused", "concluded", "archived"]
PageSize = Annotated[int, Field(ge=1, le=50)]
_LISTED = ("key", "name", "status", "tags", "owner", "created_at", "concluded_arm")


class ReadingTools:
    """What a key with the scope `read` is good for."""

    def __init__(self, api: ApiCalls) -> None:
        self._api = api

    async def list_experiments(
        self,
        *,
        status: Status | None = None,
        tag: str | None = None,
        owner: str | None = None,
        search: str | None = None,
        page_size: PageSize = 20,
        page_token: str | None = None,
    ) -> dict[str, Any]:
        """List experiments, newest first: all, or those that match. While there are more, next_page_token leads on."""
        wanted = {"status": status, "tag": tag, "owner": owner, "q": search}
        page = await self._api.get("/v1/experiments", page_size=page_size, page_token=page_token, **wanted)
        rows = [
            {name: one.get(name) for name in _LISTED} | {"number_of_arms": len(one.get("arms", ()))}
            for one in page.get("experiments", ())
        ]
        return bounded({"experiments": rows, "next_page_token": page.get("next_page_token")})

    async def read_experiment(self, experiment: ExperimentKey, arms_from: ArmsFrom = 0) -> dict[str, Any]:
        """Read an experiment: its status, settings and arms with their values."""
        return bounded(await self._api.get(path_of(experiment)), arms_from)

    async def recommendation(self, experiment: ExperimentKey, arms_from: ArmsFrom = 0) -> dict[str, Any]:
        """The best arm and how sure that is.

        `summary` says it in sentences, the first of which says whether the experiment may stop; `verdict` says it in data
        (collecting, leading, decided, concluded). `arm` alone is only the best guess so far: never call it the winner unless
        the verdict is decided.
        """
        found = await self._api.get(path_of(experiment, "/recommendation"))
        return bounded({"summary": found.get("summary"), "verdict": found.get("verdict")} | found, arms_from)

    async def plan(self, question: PlanIn) -> dict[str, Any]:
        """How long an experiment would take, before it is created: visitors and days until its verdict.

        One of `arms` arms is supposed to be better than `baseline` by `lift` (both in units of the reward: a rate of 10% is 0.1).
        """
        return bounded(await self._api.post("/dashboard/plan", question.model_dump(exclude_unset=True)))
