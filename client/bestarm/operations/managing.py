"""Experiments and their arms: create, read, change, move through their life."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from bestarm.assignment import Json
from bestarm.exchange import Answer, Call, Flow, sent
from bestarm.experiment import Arm, Experiment
from bestarm.operations.core import Core
from bestarm.requests import get, path_of, post, tell

_ALL = "/v1/experiments"
_PAGE = 100


def create(
    core: Core, /, experiment: str, arms: Iterable[Mapping[str, Json] | str], *, timeout: float | None = None, **settings: Json
) -> Flow[Experiment]:
    """Create an experiment with its arms, each a key or all that the API takes of one, and any of its `settings`."""
    listed = [{"key": arm} if isinstance(arm, str) else dict(arm) for arm in arms]
    call = post(_ALL, {"key": experiment, "arms": listed, **settings})
    return (yield from sent(call, _experiment, core.deadline(timeout)))


def experiment(core: Core, /, experiment: str, *, timeout: float | None = None) -> Flow[Experiment]:
    """Read an experiment."""
    return (yield from sent(get(path_of(experiment)), _experiment, core.deadline(timeout)))


def experiments(
    core: Core,
    /,
    *,
    status: str | None = None,
    tag: str | None = None,
    owner: str | None = None,
    q: str | None = None,
    limit: int = 1_000,
    timeout: float | None = None,
) -> Flow[list[Experiment]]:
    """The newest experiments, up to `limit`, or those that all the filters hold for. Lists have no values of arms."""
    found: list[Experiment] = []
    asked = {"status": status, "tag": tag, "owner": owner, "q": q, "page_size": min(limit, _PAGE), "page_token": None}
    deadline = core.deadline(timeout)
    while len(found) < limit:
        page, asked["page_token"] = yield from sent(get(_ALL, asked), _page, deadline)
        found += page
        if asked["page_token"] is None:
            break
    return found[:limit]


def patch(core: Core, /, experiment: str, *, timeout: float | None = None, **settings: Json) -> Flow[Experiment]:
    """Change settings of an experiment."""
    return (yield from sent(tell(path_of(experiment), settings, method="PATCH"), _experiment, core.deadline(timeout)))


def _move(core: Core, /, experiment: str, move: str, body: Json, timeout: float | None) -> Flow[Experiment]:
    return (yield from sent(post(path_of(experiment, move), body), _experiment, core.deadline(timeout)))


def start(core: Core, /, experiment: str, *, timeout: float | None = None) -> Flow[Experiment]:
    """Let a draft run."""
    return (yield from _move(core, experiment, "start", None, timeout))


def pause(core: Core, /, experiment: str, *, timeout: float | None = None) -> Flow[Experiment]:
    """Draw no more for the time being; rewards still count."""
    return (yield from _move(core, experiment, "pause", None, timeout))


def resume(core: Core, /, experiment: str, *, timeout: float | None = None) -> Flow[Experiment]:
    """Let a paused experiment run on."""
    return (yield from _move(core, experiment, "resume", None, timeout))


def conclude(core: Core, /, experiment: str, arm: str | None = None, *, timeout: float | None = None) -> Flow[Experiment]:
    """Serve one arm from now on: this one, or the recommended one."""
    return (yield from _move(core, experiment, "conclude", None if arm is None else {"arm": arm}, timeout))


def reopen(core: Core, /, experiment: str, *, timeout: float | None = None) -> Flow[Experiment]:
    """Take a conclusion back: the experiment is paused."""
    return (yield from _move(core, experiment, "reopen", None, timeout))


def archive(core: Core, /, experiment: str, *, timeout: float | None = None) -> Flow[Experiment]:
    """Freeze a concluded experiment."""
    return (yield from _move(core, experiment, "archive", None, timeout))


def duplicate(core: Core, /, experiment: str, key: str, *, timeout: float | None = None) -> Flow[Experiment]:
    """A draft under another key, with the same settings and arms."""
    return (yield from _move(core, experiment, "duplicate", {"key": key}, timeout))


def delete(core: Core, /, experiment: str, *, timeout: float | None = None) -> Flow[None]:
    """Delete a draft or an archived experiment, with all its data.

    Sent again it finds nothing, so one that was answered into a broken connection ends in `NotFound`: it is gone all the same.
    """
    path = path_of(experiment)
    return (yield from sent(Call("DELETE", f"{path}?confirm={path.rpartition('/')[2]}"), lambda _: None, core.deadline(timeout)))


def arm(core: Core, /, experiment: str, arm: str, *, timeout: float | None = None) -> Flow[Arm]:
    """Read an arm."""
    return (yield from sent(get(path_of(experiment, "arms", arm)), _arm, core.deadline(timeout)))


def add_arm(core: Core, /, experiment: str, arm: str, *, timeout: float | None = None, **settings: Json) -> Flow[Arm]:
    """Add an arm, with `name`, `value` and `min_share` if given."""
    return (yield from sent(post(path_of(experiment, "arms"), {"key": arm, **settings}), _arm, core.deadline(timeout)))


def patch_arm(core: Core, /, experiment: str, arm: str, *, timeout: float | None = None, **settings: Json) -> Flow[Arm]:
    """Change an arm; `status="disabled"` takes it out, `status="active"` brings it back."""
    call = tell(path_of(experiment, "arms", arm), settings, method="PATCH")
    return (yield from sent(call, _arm, core.deadline(timeout)))


def _experiment(answer: Answer) -> Experiment:
    return Experiment.read(json.loads(answer.content))


def _arm(answer: Answer) -> Arm:
    return Arm.read(json.loads(answer.content))


def _page(answer: Answer) -> tuple[list[Experiment], str | None]:
    written = json.loads(answer.content)
    return [Experiment.read(one) for one in written["experiments"]], written["next_page_token"]
