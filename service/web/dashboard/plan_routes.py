"""What to expect of an experiment that somebody is about to create: the same code as `bestarm plan`, with fewer runs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Response
from pydantic import ConfigDict, Field

from service.application.live.version_cache import Cached, Subject
from service.application.reads.planning import planned
from service.domain import PolicySpec, RewardSpec
from service.domain.limits import FEWEST_ARMS, MOST_PLANNED_ARMS
from service.policy.automatic import AutomaticPolicy
from service.simulation.prospect import Prospect, lifted_means
from service.simulation.verdict_plan import QUICK, Question, runs_for
from service.web.api import views
from service.web.api.body import StrictRoute
from service.web.api.parameters import ContextOf
from service.web.api.request_schemas import ExpiryIn, Number, PolicyIn, Request, RewardIn, Worthwhile

router = APIRouter(prefix="/dashboard", include_in_schema=False, route_class=StrictRoute)
# The same question has the same answer: as long as somebody goes on typing.
_FRESH_SECONDS = 600.0
_SECONDS_A_DAY = 86_400
# A question is kept with its answer.
_QUESTION_BYTES = 8_192
# More arms take the second that there is, without the comparison.
_MOST_COMPARED_ARMS = 20

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class PlanIn(Request):
    """What is known of it, in the words of a new experiment where it has them."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"arms": 4, "baseline": 0.1, "lift": 0.02, "per_day": 2000}]})

    arms: Annotated[int, Field(ge=FEWEST_ARMS, le=MOST_PLANNED_ARMS)]
    baseline: Number
    lift: Worthwhile
    best: Annotated[int, Field(ge=0, lt=MOST_PLANNED_ARMS)] | None = None
    """The position of the arm that is supposed to be better; the last one unless it is said."""
    min_shares: Annotated[list[Share], Field(max_length=MOST_PLANNED_ARMS)] | None = None
    deviation: Annotated[Number, Field(gt=0)] | None = None
    worthwhile: Worthwhile | None = None
    reward: RewardIn = RewardIn()
    policy: PolicyIn = PolicyIn()
    confidence: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)] = 0.95
    expiry: ExpiryIn | None = None
    per_day: Annotated[float, Field(gt=0, le=1e12, allow_inf_nan=False)] | None = None

    def question(self) -> Question:
        """As the simulation takes it."""
        reward = RewardSpec(self.reward.kind, self.reward.goal, self.reward.min, self.reward.max)
        # A window is so many visitors; without their number a day it is left out.
        window = None
        if self.expiry is not None and self.expiry.reward is not None and self.per_day is not None:
            window = round(self.expiry.after_seconds * self.per_day / _SECONDS_A_DAY)
        prospect = Prospect(
            reward=reward,
            policy=self._policy(reward),
            means=lifted_means(reward, self.arms, self.baseline, self.lift, self.best),
            deviation=self.deviation or 0.0,
            floors=tuple(self.min_shares or [0.0] * self.arms),
            confidence=self.confidence,
            worthwhile=self.worthwhile,
            window=window,
            silence=None if window is None or self.expiry is None else self.expiry.reward,
        )
        runs = runs_for(self.arms, QUICK)
        return Question(prospect, self.per_day, runs, step=QUICK.step, compared=self.arms <= _MOST_COMPARED_ARMS)

    def _policy(self, reward: RewardSpec) -> PolicySpec:
        if self.policy.kind == "auto":
            return AutomaticPolicy(0).resolved(reward.kind, self.arms)
        return PolicySpec(seed=0, keeps_floors=True, **self.policy.model_dump(exclude={"seed"}))


@router.post("/plan")
async def plan_experiment(context: ContextOf, body: PlanIn) -> Response:
    """Visitors until the verdict, days, what the policy saves, and the winner's share."""
    question = body.question()

    async def make() -> Cached[bytes]:
        content = views.encode(await context.lanes.courses.run(planned, question))
        return Cached(0, content, len(content) + _QUESTION_BYTES)

    made = await context.cache.within((Subject.PLAN, question), _FRESH_SECONDS, make)
    return Response(made.content, media_type="application/json")
