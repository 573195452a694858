"""The command `plan` of the `bestarm` program: how long will my experiment take? It needs no extra."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, cast, get_args

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

from service.domain import Goal, PolicySpec, RewardSpec
from service.domain.limits import MOST_PLANNED_ARMS
from service.errors import InvalidValue
from service.policy.automatic import AutomaticPolicy
from service.simulation.kernels.catalogue import AUTO, contender
from service.simulation.prospect import Prospect, lifted_means
from service.simulation.simulation_options import failures_as_sentences, numbers, reward_kind
from service.simulation.verdict_plan import SEED, Question, VerdictPlan, duration, expected, plan, rounded, runs_for

if TYPE_CHECKING:
    from service.domain import PolicyKind

_MOST_RUNS = 100_000
_MOST_PER_DAY = 1e12
_POLICIES = (AUTO, "simple_tracking", "almost_tracking", "uniform")
_POLICY_HELP = f"One of {', '.join(_POLICIES)}; or a variant, as simple_tracking:s=1.5:guard=0.25."
_HOURS_A_DAY = 24


def plan_experiment(
    *,
    arms: Annotated[int | None, typer.Option(help="Number of arms.")] = None,
    baseline: Annotated[
        float | None, typer.Option(help="The mean of the arms that are not better: 0.10 for a rate of 10%.")
    ] = None,
    lift: Annotated[float | None, typer.Option(help="By how much one arm is better: 0.02 for two points of a rate.")] = None,
    means: Annotated[str | None, typer.Option(help="All means, as 0.1,0.12, instead of arms, baseline and lift.")] = None,
    per_day: Annotated[float | None, typer.Option(help="Visitors a day, to tell the time it takes.")] = None,
    worthwhile: Annotated[float | None, typer.Option(help="Until it is decided: smaller differences do not matter.")] = None,
    kind: Annotated[str, typer.Option(help="Rewards: binary, bounded or real.")] = "binary",
    minimum: Annotated[float, typer.Option("--min", help="The smallest of bounded rewards.")] = 0.0,
    maximum: Annotated[float, typer.Option("--max", help="The largest of bounded rewards.")] = 1.0,
    deviation: Annotated[float | None, typer.Option(help="Standard deviation of bounded or real rewards.")] = None,
    goal: Annotated[str, typer.Option(help="maximize, or minimize where less is better.")] = "maximize",
    confidence: Annotated[float, typer.Option(help="Of the verdict.")] = 0.95,
    min_share: Annotated[str, typer.Option(help="The floor of every arm, or one for each arm, as 0.1,0,0.")] = "0",
    policy: Annotated[str, typer.Option(help=_POLICY_HELP)] = AUTO,
    delay: Annotated[int | None, typer.Option(help="Draws decided before a reward is known.")] = None,
    delay_hours: Annotated[float | None, typer.Option(help="The same in hours, with --per-day.")] = None,
    expiry_hours: Annotated[float | None, typer.Option(help="Silence counts as a reward after so long, with --per-day.")] = None,
    expiry_reward: Annotated[float, typer.Option(help="The reward that silence counts as.")] = 0.0,
    loss: Annotated[float, typer.Option(help="Part of the rewards that never come, where silence is no reward.")] = 0.0,
    runs: Annotated[int | None, typer.Option(help="Simulated experiments; fewer the more arms there are.")] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same plan.")] = SEED,
    as_json: Annotated[bool, typer.Option("--json", help="The plan as JSON.")] = False,
) -> None:
    """How long an experiment will take: visitors until its verdict, and days."""
    with failures_as_sentences():
        if goal not in get_args(Goal):
            raise InvalidValue("/goal", "The goal is maximize or minimize.")
        reward = _reward(kind, cast("Goal", goal), minimum, maximum)
        supposed = _means(reward, arms, baseline, lift, means)
        rate = _rate(per_day)
        if delay is not None and delay_hours is not None:
            raise InvalidValue("/delay", "Give --delay or --delay-hours, not both.")
        late = _draws_in(delay_hours, rate, "/delay_hours") if delay is None else delay
        window = None if expiry_hours is None else _draws_in(expiry_hours, rate, "/expiry_hours")
        prospect = Prospect(
            reward=reward,
            policy=_policy(policy, reward, len(supposed)),
            means=supposed,
            deviation=deviation or 0.0,
            floors=_floors(min_share, len(supposed)),
            confidence=confidence,
            worthwhile=worthwhile,
            delay=late,
            window=window,
            silence=None if window is None else expiry_reward,
            loss=loss,
        )
        question = Question(prospect, rate, _runs(runs, len(supposed)), _seed(seed))
        found = _planned(question)
        if as_json:
            typer.echo(json.dumps(found.described(), indent=2))
        else:
            _print(found)


def _reward(kind: str, goal: Goal, minimum: float, maximum: float) -> RewardSpec:
    known = reward_kind(kind)
    if known != "bounded":
        return RewardSpec(known, goal)
    if not minimum < maximum:
        raise InvalidValue("/min", "--min must be below --max.")
    return RewardSpec(known, goal, minimum, maximum)


def _means(
    reward: RewardSpec, arms: int | None, baseline: float | None, lift: float | None, means: str | None
) -> tuple[float, ...]:
    if means is not None:
        if arms is not None or baseline is not None or lift is not None:
            raise InvalidValue("/means", "Give either --means, or --arms with --baseline and --lift.")
        return tuple(numbers(means))
    if arms is None:
        raise InvalidValue("/arms", f"Give --arms (2 to {MOST_PLANNED_ARMS}) with --baseline and --lift, or --means.")
    return lifted_means(reward, arms, baseline, lift)


def _rate(per_day: float | None) -> float | None:
    if per_day is not None and not 0.0 < per_day <= _MOST_PER_DAY:
        raise InvalidValue("/per_day", f"Visitors a day are more than 0 and at most {_MOST_PER_DAY:g}.")
    return per_day


def _draws_in(hours: float | None, per_day: float | None, pointer: str) -> int:
    if hours is None:
        return 0
    if per_day is None:
        raise InvalidValue(pointer, "Hours need --per-day: how many visitors come in them.")
    if not 0.0 <= hours <= _MOST_PER_DAY:
        raise InvalidValue(pointer, "Hours are 0 or more.")
    return round(hours * per_day / _HOURS_A_DAY)


def _policy(name: str, reward: RewardSpec, arms: int) -> PolicySpec:
    """As an experiment would have it, from the names and options that `bestarm simulate` takes."""
    kind = name.partition(":")[0]
    if kind not in _POLICIES or (kind == AUTO and name != AUTO):
        raise InvalidValue("/policy", f"There is no policy {name!r} to plan for. Policies: {', '.join(_POLICIES)}.")
    if name == AUTO:
        return AutomaticPolicy(0).resolved(reward.kind, arms)
    options = contender(name).options
    if options.get("s", 1.0) < 1.0:
        raise InvalidValue("/policy", "The sharpness s of an experiment is 1 or more.")
    if "realised" in options:
        raise InvalidValue("/policy", "A plan goes by planned batches: leave 'realised' out.")
    return PolicySpec(
        cast("PolicyKind", kind),
        sharpness=options.get("s", 1.0),
        batch_size=int(options["n"]) if "n" in options else None,
        sufficiency=options.get("c", 0.999),
        guard=options.get("guard", 0.0),
        ties="paper" if options.get("ties") == 0.0 else "limit",
        keeps_floors=True,
    )


def _floors(text: str, arms: int) -> tuple[float, ...]:
    given = numbers(text)
    return tuple(given * arms if len(given) == 1 else given)


def _runs(runs: int | None, arms: int) -> int:
    if runs is not None and not 1 <= runs <= _MOST_RUNS:
        raise InvalidValue("/runs", f"The number of runs lies between 1 and {_MOST_RUNS:,}.")
    return runs_for(arms) if runs is None else runs


def _seed(seed: int) -> int:
    if seed < 0:
        raise InvalidValue("/seed", "A seed is 0 or more.")
    return seed


def _planned(question: Question) -> VerdictPlan:
    """With one bar, where somebody watches."""
    console = Console(stderr=True)
    columns = (TextColumn("Playing the experiment {task.fields[runs]:,} times"), BarColumn(), TaskProgressColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=1.0, runs=question.runs)
        return plan(question, lambda part: bar.update(task, completed=part))


def _print(found: VerdictPlan) -> None:
    """The sentence first, then what it rests on, a line each."""
    typer.echo(found.sentence())
    typer.echo("")
    for line in _details(found):
        typer.echo(f"- {line}")


def _details(found: VerdictPlan) -> list[str]:
    question, prospect = found.question, found.question.prospect
    rate, wanted = question.per_day, prospect.worthwhile
    lines = []
    if wanted is None:
        lines.append("Until the best arm is separated: shown to be better than every other one.")
        lines.append("Arms that are equal never separate. With --worthwhile such an experiment ends, too.")
    else:
        lines.append(f"Until it is decided: no arm is better than the one found by {wanted:g} or more.")
        if found.equal is not None:
            lines.append(f"If no arm is better than another: {_lower(expected(found.equal, rate))}.")
        if found.separated is not None:
            lines.append(f"Until the best arm is separated from all others: {_lower(expected(found.separated, rate))}.")
    if found.share is not None and found.found is not None:
        lines.append(
            f"The best arm gets {found.share:.0%} of the traffic on the way, and is the one found {found.found:.1%} of the time."
        )
    lines.append(found.policy_sentence())
    late = max(prospect.delay, prospect.window or 0)
    if late:
        when = f" ({duration(late / rate)})" if rate else ""
        lines.append(f"The last {rounded(late)} visitors{when} are those whose rewards do not count yet.")
    lines.append(f"From {question.runs:,} simulated experiments at {prospect.confidence:.10g} confidence; seed {question.seed}.")
    return lines


def _lower(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command("plan")(plan_experiment)
