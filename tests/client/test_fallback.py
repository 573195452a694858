"""An outage never breaks the page: with a fallback an ask is answered in time, whatever the service does."""

from __future__ import annotations

import gc
import socket
import subprocess
import sys
import textwrap
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from benchmarks.client_fallback import DEADLINE, Stopwatch, ask, ask_asynchronously
from bestarm import AsyncClient, Client, DeadlineExceeded, Unreachable
from testing.faulty_proxy import Fault, FaultyProxy
from testing.server import free_port
from tests.client.conftest import Driven, Kind, NewClient

_FAULTS: list[Fault] = [
    "reset_before", "reset_after", "cut", "unavailable", "error", "garbage", "redirect", "not_found_page", "hang", "trickle",
]  # fmt: skip
_BACK_BY = 0.06
# For tests that run beside others.
_LOOSELY = 0.5


def _timed(ask: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.monotonic()
    answer = ask()
    return time.monotonic() - begun, answer


@contextmanager
def _black_hole() -> Iterator[str]:
    """An address where packets are lost: the queue of connections is full, and further ones are not even refused."""
    with ExitStack() as opened:
        listener = opened.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        address = listener.getsockname()
        for _ in range(8):
            one = opened.enter_context(socket.socket())
            one.setblocking(False)
            with suppress(BlockingIOError):
                one.connect(address)
        yield f"http://127.0.0.1:{address[1]}"


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
@pytest.mark.parametrize("fault", _FAULTS)
def test_a_fallback_whatever_the_service_does(new_client: NewClient, proxy: FaultyProxy, experiment: str, fault: Fault) -> None:
    """It says that it is one and why; its reward is dropped, counted, and never sent; the next ask is real again."""
    hurried = new_client(proxy.url, timeout=DEADLINE)
    proxy.always = fault
    seconds, shown = _timed(lambda: hurried.assign(experiment, "u", fallback="arm-1", fallback_value=1))
    assert seconds < _LOOSELY
    assert (shown.arm, shown.value, shown.is_fallback, shown.id, shown.reason) == ("arm-1", 1, True, None, "fallback")
    assert shown.error is not None
    proxy.always = None
    asked = len(proxy.requests)
    assert hurried.reward(shown, 1) is shown
    assert hurried.reward(shown.id, 1, experiment=experiment).id is None
    assert not hurried.reward_later(shown, 1)
    assert not hurried.reward_later(shown.id, 1, experiment=experiment)
    assert (hurried.dropped_rewards, hurried.counts.fallbacks, len(proxy.requests)) == (4, 1, asked)
    real = hurried.assign(experiment, "u", fallback="arm-1", timeout=5)
    assert (real.is_fallback, real.status) == (False, "pending")


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_refusals_are_no_reason_to_fail_either(client: Driven, experiment: str) -> None:
    """Unknown, paused, a unit that is too long, a name that is none: the page is shown."""
    client.pause(experiment)
    asks = [(experiment, "u"), ("unknown", "u"), (experiment, "u" * 300), ("no/name", "u"), ("", None), ("\ud800", "u")]
    shown = [client.assign(*ask, fallback="arm-0") for ask in asks]
    codes = [one.error.code for one in shown]
    assert codes == [
        "experiment_not_running",
        "experiment_not_found",
        *["validation_failed"] * 4,
    ]


def test_a_service_that_is_not_there(new_client: NewClient) -> None:
    """Refused connections, packets that are lost, names that do not exist."""
    with _black_hole() as hole:
        for url, errors in (
            (f"http://127.0.0.1:{free_port()}", (Unreachable,)),
            (hole, (DeadlineExceeded,)),
            ("http://nowhere.invalid", (Unreachable, DeadlineExceeded)),
        ):
            seconds, shown = _timed(lambda url=url: new_client(url, timeout=DEADLINE).assign("any", fallback="a"))  # type: ignore[misc]
            assert isinstance(shown.error, errors), (url, shown.error)
            assert seconds < _LOOSELY, url


def test_a_name_server_that_is_silent(new_client: NewClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for it beyond the deadline, and however many ask, one thread waits."""
    answered = threading.Event()

    def silent(*_: object, **__: object) -> list[Any]:
        answered.wait(30)
        raise socket.gaierror("there is no such name")

    monkeypatch.setattr(socket, "getaddrinfo", silent)
    hurried = new_client("http://service.example", timeout=DEADLINE)
    taken = [_timed(lambda: hurried.assign("any", fallback="a"))[0] for _ in range(5)]
    waiting = [thread for thread in threading.enumerate() if thread.name == "bestarm-resolver"]
    answered.set()
    assert max(taken) < _LOOSELY
    assert len(waiting) == 1


@pytest.mark.process
def test_the_first_ask_loads_nothing(kind: Kind) -> None:
    """What takes time is done when the client is made: the first page has the same deadline as any other."""
    script = """
        import asyncio, sys
        from bestarm import AsyncClient, Client
        client = {"blocking": Client, "asynchronous": AsyncClient}[sys.argv[1]]("http://127.0.0.1:9", timeout=0.05)
        async def ask():
            before = set(sys.modules)
            asked = client.assign("any", fallback="a")
            shown = await asked if isinstance(client, AsyncClient) else asked
            assert shown.is_fallback
            print(sorted(set(sys.modules) - before))
        asyncio.run(ask())
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script), kind], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def _memory() -> int:
    """Bytes that this process has now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def _ask_often(driven: Driven, watch: Stopwatch, times: int) -> None:
    if isinstance(driven.client, Client):
        ask(driven.client, watch, times)
    else:
        driven.gathered(ask_asynchronously(driven.client, watch, times))


def _slowest(kind: Kind, url: str, asks: int) -> float:
    """The longest that one of so many asks took, by the client's own part; after the first hundred the memory stays as it is."""
    watch = Stopwatch()
    gc.collect()
    gc.freeze()  # else a collection now and then would look through all that the test runner has
    with closing(Driven(kind, url, timeout=DEADLINE)) as driven:
        _ask_often(driven, watch, 100)
        before = _memory()
        _ask_often(driven, watch, asks - 100)
        assert _memory() - before < 4_000_000
        assert driven.counts.fallbacks == len(watch.taken) == asks
    gc.unfreeze()
    return max(one.corrected for one in watch.taken)


@pytest.mark.serial
def test_a_thousand_asks_of_a_service_that_is_down(kind: Kind) -> None:
    """Each is back in time, and none leaves anything behind."""
    assert _slowest(kind, f"http://127.0.0.1:{free_port()}", 1_000) < _BACK_BY


@pytest.mark.serial
def test_asks_of_a_service_that_hangs(kind: Kind) -> None:
    """Connections are taken and nothing is ever answered."""
    with socket.create_server(("127.0.0.1", 0), backlog=2_000) as silent:
        assert _slowest(kind, f"http://127.0.0.1:{silent.getsockname()[1]}", 400) < _BACK_BY


def test_what_is_wrong_in_the_call_is_said_at_once(new_client: NewClient) -> None:
    """It is no outage: a unit that is no text would be one in every call. Nothing of it is queued either."""
    client = new_client(f"http://127.0.0.1:{free_port()}", timeout=DEADLINE)
    name: Any = uuid.uuid4()
    wrong: list[Callable[[], Any]] = [
        lambda: client.assign("any", unit=name, fallback="a"),
        lambda: client.assign(name, fallback="a"),
        lambda: client.reward_later(name, 1, experiment="any"),
        lambda: client.reward_later("asg_1", 1, experiment=name),
        lambda: client.reward_unit_later("any", name, 1),
        lambda: client.reward_unit_later(name, "u", 1),
    ]
    for call in wrong:
        with pytest.raises(TypeError, match="is a text"):
            call()
    assert client.counts.rewards_waiting == 0


def test_a_time_out_is_a_number_above_zero() -> None:
    """And an address is an address: what is wrong is found when the client is made."""
    for timeout in (0, -1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="time-out"):
            Client("http://127.0.0.1:1", timeout=timeout)
    for url in ("127.0.0.1:8000", "ftp://service", "http://", "http://service/?a=b"):
        with pytest.raises(ValueError, match="address"):
            AsyncClient(url)
    with pytest.raises(ValueError, match="printable"):
        Client("http://service", key="a\nb")
