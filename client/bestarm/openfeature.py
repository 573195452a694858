"""The OpenFeature provider: a flag is an experiment, a variant its arm, the value the arm's value.

    from bestarm.openfeature import BestarmProvider
    from openfeature import api

    api.set_provider(BestarmProvider("http://127.0.0.1:8000", timeout=0.2))

**Evaluation is exposure**: it asks for an arm. Use sticky experiments, where a unit (the targeting key) keeps the arm it had; in
any other each evaluation is a new draw.
"""

from __future__ import annotations

import asyncio
import logging
import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from openfeature.evaluation_context import EvaluationContext
from openfeature.exception import (
    FlagNotFoundError,
    GeneralError,
    InvalidContextError,
    OpenFeatureError,
    TargetingKeyMissingError,
    TypeMismatchError,
)
from openfeature.flag_evaluation import FlagResolutionDetails, Reason
from openfeature.provider import AbstractProvider, Metadata
from openfeature.track import TrackingEventDetails

from bestarm.assignment import Assignment, Json
from bestarm.client import AsyncClient, Client
from bestarm.errors import Error, Invalid, NotFound
from bestarm.forks import begin_anew_after_fork

if TYPE_CHECKING:
    from openfeature.flag_evaluation import FlagValueType

    Object = Sequence[FlagValueType] | Mapping[str, FlagValueType]

T = TypeVar("T")
Shape = Callable[[Json], Any]
REWARD = "reward"
_NOT_RUNNING = "experiment_not_running"
_UNITS = 10_000
_log = logging.getLogger("bestarm")


class BestarmProvider(AbstractProvider):
    """Evaluates flags by asking the service, and tells it rewards: `client.track("reward", context, TrackingEventDetails(1))`."""

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        timeout: float = 1.0,
        flush_seconds: float = 1.0,
        spool: str | None = None,
    ) -> None:
        super().__init__()
        self._blocking = partial(Client, url, key=key, timeout=timeout, flush_seconds=flush_seconds, spool=spool)
        self._asynchronous = partial(AsyncClient, url, key=key, timeout=timeout)
        self._shown = _LastShown()
        self._open()

    def _open(self) -> None:
        self.client, self.async_client = self._blocking(), self._asynchronous()
        self._is_shut = False

    def get_metadata(self) -> Metadata:
        """The provider's name."""
        return Metadata(name="bestarm")

    def initialize(self, evaluation_context: EvaluationContext) -> None:  # noqa: ARG002 - OpenFeature's own
        """Open it anew if it was shut down. The service is not asked for: an outage at the start is an outage like any other."""
        if self._is_shut:
            self._open()

    def shutdown(self) -> None:
        """Send what is queued, and close the connections."""
        self._is_shut = True
        self.client.close()
        try:
            self._closing = asyncio.get_running_loop().create_task(self.async_client.close())
        except RuntimeError:
            return  # the event loop is gone, and its connections with it

    def track(
        self,
        tracking_event_name: str,
        evaluation_context: EvaluationContext | None = None,
        tracking_event_details: TrackingEventDetails | None = None,
    ) -> None:
        """Queue the reward of what the unit was shown, of the flags that the attribute `flag` names or of all it was shown here.

        Other events are not ours. What was a default was no draw, and its reward is dropped.
        """
        details = tracking_event_details or TrackingEventDetails()
        unit = evaluation_context.targeting_key if evaluation_context else None
        if tracking_event_name != REWARD:
            return
        if not isinstance(unit, str) or details.value is None or not math.isfinite(details.value):
            _log.warning("A reward needs a targeting key and a finite value: %s for %s", details.value, unit)
            return
        named = details.attributes.get("flag")
        flags = [named] if isinstance(named, str) else named if isinstance(named, Iterable) else self._shown.flags(unit)
        for flag in flags:
            self._tell(str(flag), unit, float(details.value))

    def _tell(self, flag: str, unit: str, reward: float) -> None:
        shown = self._shown.get(unit, flag)
        if shown is None:
            self.client.reward_unit_later(flag, unit, reward)
        else:
            self.client.reward_later(shown, reward)

    def _resolve(self, flag: str, default: T, context: EvaluationContext | None, shape: Shape) -> FlagResolutionDetails[T]:
        unit = _unit(context)
        try:
            shown: Assignment | Error = self.client.assign(flag, unit)
        except Error as trouble:
            shown = trouble
        return self._details(flag, unit, default, shown, shape)

    async def _resolve_async(
        self, flag: str, default: T, context: EvaluationContext | None, shape: Shape
    ) -> FlagResolutionDetails[T]:
        unit = _unit(context)
        try:
            shown: Assignment | Error = await self.async_client.assign(flag, unit)
        except Error as trouble:
            shown = trouble
        return self._details(flag, unit, default, shown, shape)

    def _details(self, flag: str, unit: str, default: T, shown: Assignment | Error, shape: Shape) -> FlagResolutionDetails[T]:
        """What the SDK is told; and what the unit was shown is remembered, so that its reward goes there or nowhere."""
        if isinstance(shown, Error):
            self._shown.put_default(unit, flag)
            if shown.code == _NOT_RUNNING:
                return FlagResolutionDetails(default, reason=Reason.DISABLED)
            raise _named(shown) from shown
        try:
            value: T = shape(shown.arm if shown.value is None else shown.value)
        except TypeError as trouble:
            self._shown.put_default(unit, flag)
            raise TypeMismatchError(f"{flag} gives {shown.arm} the value {shown.value!r}: {trouble}") from trouble
        self._shown.put(unit, flag, shown)
        reason = Reason.STATIC if shown.id is None else Reason.SPLIT
        return FlagResolutionDetails(value, reason=reason, variant=shown.arm, flag_metadata=_metadata(shown))

    def resolve_boolean_details(
        self,
        flag_key: str,
        default_value: bool,  # noqa: FBT001 - OpenFeature's own
        evaluation_context: EvaluationContext | None = None,
    ) -> FlagResolutionDetails[bool]:
        """The arm's value, which is true or false."""
        return self._resolve(flag_key, default_value, evaluation_context, _boolean)

    async def resolve_boolean_details_async(
        self,
        flag_key: str,
        default_value: bool,  # noqa: FBT001 - OpenFeature's own
        evaluation_context: EvaluationContext | None = None,
    ) -> FlagResolutionDetails[bool]:
        """The arm's value, which is true or false."""
        return await self._resolve_async(flag_key, default_value, evaluation_context, _boolean)

    def resolve_string_details(
        self, flag_key: str, default_value: str, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[str]:
        """The arm's value, or its key if it has none."""
        return self._resolve(flag_key, default_value, evaluation_context, _string)

    async def resolve_string_details_async(
        self, flag_key: str, default_value: str, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[str]:
        """The arm's value, or its key if it has none."""
        return await self._resolve_async(flag_key, default_value, evaluation_context, _string)

    def resolve_integer_details(
        self, flag_key: str, default_value: int, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[int]:
        """The arm's value, a whole number."""
        return self._resolve(flag_key, default_value, evaluation_context, _integer)

    async def resolve_integer_details_async(
        self, flag_key: str, default_value: int, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[int]:
        """The arm's value, a whole number."""
        return await self._resolve_async(flag_key, default_value, evaluation_context, _integer)

    def resolve_float_details(
        self, flag_key: str, default_value: float, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[float]:
        """The arm's value, a number."""
        return self._resolve(flag_key, default_value, evaluation_context, _float)

    async def resolve_float_details_async(
        self, flag_key: str, default_value: float, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[float]:
        """The arm's value, a number."""
        return await self._resolve_async(flag_key, default_value, evaluation_context, _float)

    def resolve_object_details(
        self, flag_key: str, default_value: Object, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[Object]:
        """The arm's value, an object or a list."""
        return self._resolve(flag_key, default_value, evaluation_context, _object)

    async def resolve_object_details_async(
        self, flag_key: str, default_value: Object, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[Object]:
        """The arm's value, an object or a list."""
        return await self._resolve_async(flag_key, default_value, evaluation_context, _object)


class _LastShown:
    """What each unit was shown last of each flag, without its value; units that were not seen for longest are forgotten."""

    def __init__(self) -> None:
        self._units: OrderedDict[str, dict[str, Assignment]] = OrderedDict()
        self.forked()
        begin_anew_after_fork(self)

    def forked(self) -> None:
        """A lock of its own for the child of a fork."""
        self._lock = threading.Lock()

    def put(self, unit: str, flag: str, shown: Assignment) -> None:
        with self._lock:
            self._put(unit, flag, replace(shown, value=None))

    def put_default(self, unit: str, flag: str) -> None:
        """A default was no draw, and takes nothing back: the reward is still that of the arm that the unit was shown before."""
        with self._lock:
            known = self._units.get(unit, {}).get(flag)
            self._put(unit, flag, known or Assignment(None, flag, "", None, unit, is_fallback=True))

    def _put(self, unit: str, flag: str, shown: Assignment) -> None:
        self._units.setdefault(unit, {})[flag] = shown
        self._units.move_to_end(unit)
        if len(self._units) > _UNITS:
            self._units.popitem(last=False)

    def get(self, unit: str, flag: str) -> Assignment | None:
        with self._lock:
            return self._units.get(unit, {}).get(flag)

    def flags(self, unit: str) -> list[str]:
        with self._lock:
            return list(self._units.get(unit, ()))


def _unit(context: EvaluationContext | None) -> str:
    if context is None or not context.targeting_key:
        raise TargetingKeyMissingError("Whoever is shown the arm must be named: set the targeting key.")
    if not isinstance(context.targeting_key, str):
        raise InvalidContextError(f"A targeting key is a text, not {context.targeting_key!r}.")
    return context.targeting_key


def _named(trouble: Error) -> OpenFeatureError:
    """An error of ours in OpenFeature's words."""
    if isinstance(trouble, NotFound):
        return FlagNotFoundError(str(trouble))
    if isinstance(trouble, Invalid):
        return InvalidContextError(str(trouble))
    return GeneralError(f"{trouble.code}: {trouble.detail}")


def _metadata(shown: Assignment) -> dict[str, bool | int | float | str]:
    """What hooks may want to note down: scalars only, and no nulls."""
    told = {"assignmentId": shown.id, "draw": shown.draw, "experiment": shown.experiment, "reason": shown.reason}
    return {name: value for name, value in told.items() if value is not None}


def _boolean(value: Json) -> bool:
    if not isinstance(value, bool):
        raise TypeError("this is not true or false")
    return value


def _string(value: Json) -> str:
    if not isinstance(value, str):
        raise TypeError("this is no text")
    return value


def _integer(value: Json) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError("this is no whole number")
    return value


def _float(value: Json) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("this is no number")
    return float(value)


def _object(value: Json) -> Object:
    if not isinstance(value, dict | list):
        raise TypeError("this is no object and no list")
    return value
