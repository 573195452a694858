"""Bodies of asks, tells, batches and new experiments that are right but for a thing or two."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st

_ARMS = [{"key": "control", "name": "Grey", "value": {"color": "grey"}, "min_share": 0.1}, {"key": "green"}]
NEARLY_RIGHT: dict[str, Any] = {
    "ask": {"unit": "user-42"},
    "ask_batch": {"units": ["user-1", "user-2", "user-1"]},
    "tell": {"reward": 1},
    "tell_batch": {"rewards": [{"assignment": "asg_" + "0" * 27, "reward": 1}, {"unit": "user-1", "reward": 0}]},
    "observe": {"observations": [{"arm": "arm-0", "reward": 1, "id": "import-77"}, {"arm": "arm-1", "reward": 0}]},
    "create_experiment": {
        "key": "nearly",
        "name": "Nearly",
        "arms": _ARMS,
        "policy": {"kind": "almost_tracking", "seed": 7, "batch_size": 4},
        "reward": {"kind": "bounded", "min": 0, "max": 1, "goal": "minimize"},
        "expiry": {"after_seconds": 60, "reward": 0},
        "sticky": True,
        "confidence": 0.95,
        "conclude_when": {"separated": True, "min_observations": 10},
        "control": "control",
        "worthwhile": 0.01,
        "tags": ["one", "two"],
        "status": "running",
    },
}
"""By operation: a body that is right."""
_ODD_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 0.5, -0.0, 1.0, 1e-400, 1e100, 1.0000000001e100, 2**53, 2**63, 2**64, 10**30, 10**400),
    *(
        "",
        " ",
        "a",
        "A",
        "1",
        "null",
        "a" * 64,
        "a" * 65,
        "a" * 255,
        "a" * 256,
        "a" * 20_000,
        "é",
        "\u202e",
        "😀",
        "a\x00",
        "\ud800",
    ),
    *("control", "green", "running", "archived", "simple_tracking", "asg_" + "0" * 27, "../x", "a/b", "%00", "<script>", "'; --"),
    *([], {}, [[]], {"": None}, [None], {"key": "a"}, ["a", "a"], [0] * 100, {"a" * 300: 1}),
)


def nearly_right(name: str) -> st.SearchStrategy[Any]:
    """The body of this operation with one change, or two."""
    return st.lists(_changes(), min_size=1, max_size=2).map(lambda changes: _changed(NEARLY_RIGHT[name], changes))


def _changes() -> st.SearchStrategy[tuple[str, int, Any]]:
    """What to do, at which of the places, and with what."""
    value = st.sampled_from(_ODD_VALUES) | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8)
    return st.tuples(st.sampled_from(("replace", "replace", "drop", "add", "rename", "repeat")), st.integers(0, 999), value)


def _changed(body: Any, changes: list[tuple[str, int, Any]]) -> Any:  # noqa: ANN401 - JSON
    changed = {"": copy.deepcopy(body)}
    for what, number, value in changes:
        places = [*_places(changed)]
        container, step = places[number % len(places)]
        _change(container, step, what, value)
    return changed.get("", body)


def _places(container: Any) -> list[tuple[Any, Any]]:  # noqa: ANN401 - JSON
    """Everything in it, as what holds it and under which name or number."""
    steps = [*container] if isinstance(container, dict) else [*range(len(container))] if isinstance(container, list) else []
    return [place for step in steps for place in ((container, step), *_places(container[step]))]


def _change(container: Any, step: Any, what: str, value: Any) -> None:  # noqa: ANN401 - JSON
    inner = container[step]
    if what == "drop" and step != "":
        del container[step]
    elif what == "add" and isinstance(inner, dict):
        inner[str(value)[:300]] = value
    elif what == "add" and isinstance(inner, list):
        inner.append(value)
    elif what == "rename" and isinstance(container, dict) and step != "":
        container[f"{step}s"] = container.pop(step)
    elif what == "repeat" and isinstance(container, list):
        container.append(copy.deepcopy(inner))
    else:
        container[step] = value
