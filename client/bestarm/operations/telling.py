"""Tell: what happened."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence

from bestarm.assignment import Assignment, Observation, Result, Reward, number, text
from bestarm.deadline import Deadline
from bestarm.exchange import Answer, Call, Flow, sent, sent_once
from bestarm.operations.core import Core
from bestarm.requests import path_of, post, tell


def named(assignment: Assignment | str | None, experiment: str | None) -> tuple[str, str | None]:
    """The experiment and the id of an assignment, which is None where nothing was drawn."""
    if isinstance(assignment, Assignment):
        return assignment.experiment, assignment.id
    if experiment is None:
        raise ValueError("An assignment's id needs its experiment.")
    return text(experiment, "An experiment's key"), assignment


def reward(
    core: Core,
    /,
    assignment: Assignment | str | None,
    reward: float,
    *,
    experiment: str | None = None,
    timeout: float | None = None,
) -> Flow[Assignment]:
    """Tell the reward of an assignment, or of an id with its `experiment`. Answered, it is durable; told again, it counts once.

    The reward of a fallback, or of a concluded experiment's arm, is dropped and counted: it was no draw, and has no id.
    """
    return (yield from _changed(core, assignment, experiment, timeout, lambda path: tell(path, {"reward": number(reward)})))


def correct(
    core: Core,
    /,
    assignment: Assignment | str | None,
    reward: float,
    *,
    experiment: str | None = None,
    timeout: float | None = None,
) -> Flow[Assignment]:
    """Put another reward in the place of what was told."""
    return (
        yield from _changed(
            core, assignment, experiment, timeout, lambda path: tell(path, {"reward": number(reward)}, method="PUT")
        )
    )


def void(
    core: Core, /, assignment: Assignment | str | None, *, experiment: str | None = None, timeout: float | None = None
) -> Flow[Assignment]:
    """Take an assignment out of all counts, as if it had not been."""
    return (yield from _changed(core, assignment, experiment, timeout, lambda path: Call("DELETE", path)))


def _changed(
    core: Core, /, assignment: Assignment | str | None, experiment: str | None, timeout: float | None, call: Callable[[str], Call]
) -> Flow[Assignment]:
    key, assignment_id = named(assignment, experiment)
    if assignment_id is None:
        core.counter.add("rewards_dropped")
        return assignment if isinstance(assignment, Assignment) else Assignment(None, key, "", None)
    path = path_of(key, "assignments", assignment_id, "reward")
    return (yield from sent(call(path), lambda answer: Assignment.read(json.loads(answer.content)), core.deadline(timeout)))


def rewards(core: Core, /, experiment: str, rewards: Iterable[Reward], *, timeout: float | None = None) -> Flow[list[Result]]:
    """Tell many rewards at once, up to 10,000, by assignment or by unit. Each has its result, in order; the good ones count."""
    listed = list(rewards)
    return (yield from sent(_call(experiment, listed), _results(len(listed)), core.deadline(timeout)))


def observe(
    core: Core, /, experiment: str, observations: Iterable[Observation], *, timeout: float | None = None
) -> Flow[list[Result]]:
    """Tell rewards of arms that you chose yourself: an import, another system's traffic. Each has its result, in order."""
    listed = list(observations)
    call = post(path_of(experiment, "observations"), {"observations": [one.written() for one in listed]})
    return (yield from sent(call, _results(len(listed)), core.deadline(timeout)))


def sent_rewards(experiment: str, rewards: Sequence[Reward], deadline: Deadline) -> Flow[list[Result]]:
    """Results of many rewards, tried once."""
    return (yield from sent_once(_call(experiment, rewards), _results(len(rewards)), deadline))


def _call(experiment: str, rewards: Sequence[Reward]) -> Call:
    """Many rewards. They need no idempotency key: the service counts each once by itself, also across two batches."""
    return tell(path_of(experiment, "rewards"), {"rewards": [one.written() for one in rewards]})


def _results(expected: int) -> Callable[[Answer], list[Result]]:
    def read(answer: Answer) -> list[Result]:
        results = [Result.read(one) for one in json.loads(answer.content)["results"]]
        if len(results) != expected:
            raise ValueError(f"{len(results)} results for {expected} items")
        return results

    return read
