"""The OpenFeature provider, used through the SDK as an application does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
from openfeature import api
from openfeature.client import OpenFeatureClient
from openfeature.evaluation_context import EvaluationContext
from openfeature.exception import ErrorCode
from openfeature.flag_evaluation import Reason
from openfeature.track import TrackingEventDetails

from bestarm.openfeature import BestarmProvider
from testing.faulty_proxy import FaultyProxy
from testing.json_client import JsonClient
from testing.server import Server
from tests.client.conftest import Kind

pytestmark = pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
_VISITOR = EvaluationContext(targeting_key="user-1")
_VALUES: dict[str, tuple[Any, Any]] = {
    "boolean": (True, False),
    "string": ("green", "grey"),
    "integer": (3, 1),
    "float": (0.5, 1.5),
    "object": ({"color": "#080"}, {}),
}


@pytest.fixture
def provider(proxy: FaultyProxy) -> Iterator[BestarmProvider]:
    """Behind a network that can fail, and known to the SDK."""
    made = BestarmProvider(proxy.url, timeout=2, flush_seconds=0.01)
    api.set_provider(made)
    yield made
    api.clear_providers()


@pytest.fixture
def flags(provider: BestarmProvider) -> OpenFeatureClient:
    """What an application has of OpenFeature."""
    assert provider.get_metadata().name == "bestarm"
    return api.get_client()


@pytest.fixture
def details(kind: Kind, flags: OpenFeatureClient, provider: BestarmProvider) -> Callable[..., Any]:
    """Evaluates a flag by its type, blocking or in an event loop."""

    def evaluate(kind_of_flag: str, flag: str, default: object, context: EvaluationContext | None = _VISITOR) -> Any:  # noqa: ANN401
        if kind == "blocking":
            return getattr(flags, f"get_{kind_of_flag}_details")(flag, default, context)

        async def evaluated() -> Any:  # noqa: ANN401 - of any type
            try:
                return await getattr(flags, f"get_{kind_of_flag}_details_async")(flag, default, context)
            finally:
                await provider.async_client.close()

        return asyncio.run(evaluated())

    return evaluate


def _sticky(wire: JsonClient, key: str, value: object) -> str:
    """An experiment whose arms all have this value."""
    wire.create(key, sticky=True, arms=[{"key": "a", "value": value}, {"key": "b", "value": value}])
    return key


@pytest.mark.parametrize("flag_type", _VALUES)
def test_each_type_is_evaluated(details: Callable[..., Any], wire: JsonClient, key: str, flag_type: str) -> None:
    """With the arm as variant, and the assignment in the metadata; asked again it is the same."""
    value, default = _VALUES[flag_type]
    found = details(flag_type, _sticky(wire, key, value), default)
    assert (found.value, found.variant, found.reason, found.error_code) == (value, "a", Reason.SPLIT, None)
    assert found.flag_metadata["assignmentId"].startswith("asg_")
    assert (found.flag_metadata["draw"], found.flag_metadata["experiment"]) == (1, key)
    again = details(flag_type, key, default)
    assert (again.flag_metadata["assignmentId"], again.flag_metadata["reason"]) == (found.flag_metadata["assignmentId"], "sticky")


def test_numbers_and_arms_without_a_value(details: Callable[..., Any], wire: JsonClient, key: str) -> None:
    """A whole number is a float, too; true is no number; an arm without a value is its key."""
    assert details("float", _sticky(wire, f"{key}-1", 1), 0.5).value == 1.0
    assert details("string", _sticky(wire, f"{key}-none", None), "x").value == "a"
    for flag_type, value in [
        ("integer", True),
        ("float", True),
        ("integer", 1.5),
        ("boolean", 1),
        ("string", 1),
        ("object", "a"),
    ]:
        wrong = details(flag_type, _sticky(wire, f"{key}-{flag_type}-{value}".lower(), value), _VALUES[flag_type][1])
        assert (wrong.value, wrong.error_code, wrong.reason) == (_VALUES[flag_type][1], ErrorCode.TYPE_MISMATCH, Reason.ERROR)


def test_what_cannot_be_evaluated_is_the_default(
    details: Callable[..., Any], wire: JsonClient, proxy: FaultyProxy, key: str
) -> None:
    """In OpenFeature's own words, and nothing is drawn."""
    _sticky(wire, key, "x")
    assert details("string", key, "d", None).error_code == ErrorCode.TARGETING_KEY_MISSING
    assert details("string", "unknown", "d").error_code == ErrorCode.FLAG_NOT_FOUND
    assert details("string", key, "d", EvaluationContext("u" * 300)).error_code == ErrorCode.INVALID_CONTEXT
    wire.send("POST", f"/v1/experiments/{key}/pause")
    paused = details("string", key, "d")
    assert (paused.value, paused.reason, paused.error_code) == ("d", Reason.DISABLED, None)
    proxy.down()
    gone = details("string", key, "d")
    assert (gone.value, gone.error_code) == ("d", ErrorCode.GENERAL)
    proxy.up()
    wire.send("POST", f"/v1/experiments/{key}/conclude", {"arm": "b"})
    concluded = details("string", key, "d")
    assert (concluded.value, concluded.variant, concluded.reason) == ("x", "b", Reason.STATIC)
    assert wire.send("GET", f"/v1/experiments/{key}/recommendation").body["draws"] == 0


def test_a_reward_goes_to_what_was_shown(
    details: Callable[..., Any],
    flags: OpenFeatureClient,
    wire: JsonClient,
    proxy: FaultyProxy,
    key: str,
) -> None:
    """By name or to all that the unit was shown; of a default it is dropped; of another process's unit it is told by unit."""
    shown, unseen, failed = (_sticky(wire, f"{key}-{name}", "x") for name in ("shown", "unseen", "failed"))
    details("string", shown, "d")
    wire.ask(unseen, "user-1")
    wire.ask(failed, "user-1")
    proxy.always = "unavailable"
    proxy.retry_after = "60"
    details("string", failed, "d")
    proxy.always = None
    flags.track("reward", _VISITOR, TrackingEventDetails(1))
    flags.track("reward", _VISITOR, TrackingEventDetails(0, {"flag": unseen}))
    for nothing in (
        ("clicked", _VISITOR, TrackingEventDetails(1)),
        ("reward", None, TrackingEventDetails(1)),
        ("reward", _VISITOR),
    ):
        flags.track(*nothing)
    assert isinstance(flags.provider, BestarmProvider)
    assert flags.provider.client.flush()
    told = [wire.send("GET", f"/v1/experiments/{one}/recommendation").body["observations"] for one in (shown, unseen, failed)]
    assert (told, flags.provider.client.dropped_rewards) == ([1, 1, 0], 1)


def test_a_default_takes_nothing_back(
    details: Callable[..., Any], flags: OpenFeatureClient, wire: JsonClient, proxy: FaultyProxy, key: str
) -> None:
    """Whoever was shown an arm has its reward, also if a pause, an outage or another type came in between."""
    _sticky(wire, key, "x")
    assert details("string", key, "d").value == "x"
    assert details("boolean", key, False).error_code == ErrorCode.TYPE_MISMATCH
    proxy.always, proxy.retry_after = "unavailable", "60"
    assert details("string", key, "d").error_code == ErrorCode.GENERAL
    proxy.always = None
    wire.send("POST", f"/v1/experiments/{key}/pause")
    assert details("string", key, "d").reason == Reason.DISABLED
    flags.track("reward", _VISITOR, TrackingEventDetails(1))
    assert isinstance(flags.provider, BestarmProvider)
    assert flags.provider.client.flush()
    assert wire.send("GET", f"/v1/experiments/{key}/recommendation").body["observations"] == 1


def test_a_targeting_key_is_a_text(details: Callable[..., Any], flags: OpenFeatureClient, wire: JsonClient, key: str) -> None:
    """Another one is an error in OpenFeature's words, and never breaks a page."""
    who = EvaluationContext(targeting_key=cast("Any", 7))
    assert details("string", _sticky(wire, key, "x"), "d", who).error_code == ErrorCode.INVALID_CONTEXT
    flags.track("reward", who, TrackingEventDetails(1, {"flag": key}))
    assert isinstance(flags.provider, BestarmProvider)
    assert flags.provider.client.counts.rewards_waiting == 0


def test_a_provider_may_be_shut_down_and_used_again(server: Server, wire: JsonClient, key: str) -> None:
    """What is queued is sent by the shutdown."""
    provider = BestarmProvider(server.url, flush_seconds=60)
    _sticky(wire, key, "x")
    assert provider.resolve_string_details(key, "d", _VISITOR).value == "x"
    provider.track("reward", _VISITOR, TrackingEventDetails(1, {"flag": [key]}))
    provider.shutdown()
    assert wire.send("GET", f"/v1/experiments/{key}/recommendation").body["observations"] == 1
    provider.initialize(EvaluationContext())
    assert provider.resolve_string_details(key, "d", _VISITOR).variant == "a"
    provider.shutdown()
