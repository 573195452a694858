"""Queued rewards: in the background, in batches, bounded, none lost that could be kept, and none twice."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bestarm import AsyncClient, Client
from testing.faulty_proxy import Fault, FaultyProxy
from testing.json_client import JsonClient
from testing.server import Server, free_port
from tests.client.conftest import Driven, NewClient

_SECONDS = 20


def _wait_for(condition: Callable[[], bool]) -> None:
    """Wait until it holds, as long as that may take on a busy machine."""
    until = time.monotonic() + _SECONDS
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.005)


_LOSSES: list[Fault | None] = [
    "not_found_page", "misdirected", "reset_before", "reset_after", "cut", "unavailable", "duplicate", "garbage", None,
]  # fmt: skip


def test_rewards_are_sent_in_batches(new_client: NewClient, proxy: FaultyProxy, experiment: str) -> None:
    """Many in one request, and each counts."""
    driven = new_client(proxy.url, flush_seconds=30)
    for one in driven.assign_many(experiment, count=50):
        assert driven.reward_later(one, 1)
    assert driven.counts.rewards_waiting == 50
    assert driven.flush()
    assert driven.recommendation(experiment).observations == driven.counts.rewards_sent == 50
    assert [request.path.rpartition("/")[2] for request in proxy.requests] == ["batch", "rewards", "recommendation"]


def test_an_outage_loses_nothing_and_doubles_nothing(new_client: NewClient, proxy: FaultyProxy, experiment: str) -> None:
    """The service goes, comes back badly, comes back: all rewards arrive, once."""
    driven = new_client(proxy.url, flush_seconds=0.01)
    shown = driven.assign_many(experiment, count=20)
    proxy.down()
    for number, one in enumerate(shown):
        assert driven.reward_later(one, number % 2)
    proxy.faults.extend(_LOSSES)
    proxy.up()
    assert driven.flush(30)
    seen = driven.recommendation(experiment)
    assert (seen.observations, driven.counts.rewards_sent, driven.counts.rewards_refused) == (20, 20, 0)
    assert sum(arm.mean * arm.observations for arm in seen.arms) == pytest.approx(10)


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_what_the_service_refuses_is_counted_and_not_sent_again(client: Driven, experiment: str) -> None:
    """In conflict, unknown, of an experiment that is not there; the good ones beside them count."""
    shown = client.assign(experiment)
    client.reward(shown, 1)
    client.reward_later(shown, 0)
    client.reward_later("asg_000000000099999999999999999", 1, experiment=experiment)
    client.reward_later(shown.id, 1, experiment="unknown")
    client.reward_later("no id at all", 1, experiment=experiment)
    client.reward_later(client.assign(experiment), 7)
    client.reward_unit_later(experiment, "u" * 300, 1)
    client.reward_later(client.assign(experiment), 1)
    client.reward_unit_later(experiment, "nobody", 1)
    assert client.flush()
    assert (client.counts.rewards_refused, client.counts.rewards_sent) == (7, 1)


def test_a_full_queue_says_so(new_client: NewClient) -> None:
    """What has no room is lost, counted, and never waited for."""
    driven = new_client(f"http://127.0.0.1:{free_port()}", queue_size=3)
    assert [driven.reward_later("asg_1", 1, experiment="e") for _ in range(5)] == [True] * 3 + [False] * 2
    assert (driven.counts.rewards_waiting, driven.counts.rewards_overflowed) == (3, 2)
    assert not driven.flush(0.05)
    with pytest.raises(ValueError, match="finite"):
        driven.reward_later("asg_1", float("nan"), experiment="e")
    with pytest.raises(ValueError, match="experiment"):
        driven.reward_later("asg_1", 1)


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_a_trial_tells_its_reward(server: Server, experiment: str) -> None:
    """Once, by itself or by what silence means; not after an error, and not of a concluded experiment."""
    blocking = Client(server.url, flush_seconds=0.01)
    with blocking.trial(experiment, unit="u1") as trial:
        assert trial.arm in {"arm-0", "arm-1"}
        assert trial.value in {0, 1}
        trial.reward(1)
    with blocking.trial(experiment, otherwise=0) as trial:
        assert not trial.is_fallback
    with pytest.raises(ZeroDivisionError), blocking.trial(experiment, otherwise=0):
        _ = 1 / 0
    assert blocking.flush()
    seen = blocking.recommendation(experiment)
    assert (seen.draws, seen.observations, seen.pending) == (3, 2, 1)
    blocking.conclude(experiment, "arm-0")
    with blocking.trial(experiment) as trial:
        trial.reward(1)
    assert blocking.dropped_rewards == 1
    assert blocking.close()


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_a_trial_of_an_asynchronous_client(server: Server, experiment: str) -> None:
    """The same, awaited."""

    async def walk() -> int:
        async with AsyncClient(server.url) as client:
            async with client.trial(experiment, unit="u1", otherwise=1) as trial:
                assert trial.assignment.draw
            assert await client.flush()
            return (await client.recommendation(experiment)).observations

    assert asyncio.run(walk()) == 1


def _run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", textwrap.dedent(script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


_EXITS = {
    "blocking": """
        import sys
        from bestarm import Client
        client = Client(sys.argv[1], flush_seconds=60)
        for _ in range(3):
            client.reward_later(client.assign(sys.argv[2]), 1)
    """,
    "asynchronous": """
        import asyncio, sys
        from bestarm import AsyncClient
        client = AsyncClient(sys.argv[1], flush_seconds=60)
        async def main():
            client.reward_later(await client.assign(sys.argv[2]), 1)
        for _ in range(3):
            asyncio.run(main())
    """,
}


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_a_program_that_ends_sends_what_waits(server: Server, wire: JsonClient, experiment: str, kind: str) -> None:
    """Nobody has to close the client; an asynchronous one outlives its event loops."""
    done = _run(_EXITS[kind], server.url, experiment)
    assert (done.returncode, done.stderr) == (0, "")
    assert wire.send("GET", f"/v1/experiments/{experiment}/recommendation").body["observations"] == 3


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_a_program_that_ends_starts_no_thread(server: Server, wire: JsonClient, experiment: str) -> None:
    """From Python 3.12 on there is none to be had by then, and the service's name is still to be resolved."""
    forbidden = """
        import atexit, threading
        def refuse(thread):
            raise RuntimeError("can't create new thread at interpreter shutdown")
        atexit.register(setattr, threading.Thread, "start", refuse)
    """
    script = textwrap.dedent(_EXITS["blocking"]) + textwrap.dedent(forbidden)
    done = _run(script, server.url.replace("127.0.0.1", "localhost"), experiment)
    assert (done.returncode, done.stderr) == (0, "")
    assert wire.send("GET", f"/v1/experiments/{experiment}/recommendation").body["observations"] == 3


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_a_killed_process_leaves_rewards_to_the_next(server: Server, wire: JsonClient, experiment: str, tmp_path: Path) -> None:
    """The spool survives, half a line included; who comes next sends it, and what was sent already counts once."""
    spool = tmp_path / "spool"
    killed = _run(
        """
        import os, signal, sys
        from bestarm import Client
        asking, sending = Client(sys.argv[1]), Client(sys.argv[1], spool=sys.argv[3], flush_seconds=60)
        for _ in range(3):
            shown = asking.assign(sys.argv[2])
            sending.reward_later(shown, 1)
        asking.reward(shown, 1)
        os.kill(os.getpid(), signal.SIGKILL)
        """,
        server.url,
        experiment,
        str(spool),
    )
    assert killed.returncode == -signal.SIGKILL
    (left,) = spool.iterdir()
    assert len(left.read_text().splitlines()) == 3
    assert json.loads(left.read_text().splitlines()[0])["experiment"] == experiment
    with left.open("a") as torn:
        torn.write('{"experiment": "')
    with Client(server.url, spool=spool, flush_seconds=0.01) as heir:
        assert heir.reward_later(heir.assign(experiment), 1)
        assert heir.flush()
        assert heir.counts.rewards_sent == 4
    assert list(spool.iterdir()) == []
    assert wire.send("GET", f"/v1/experiments/{experiment}/recommendation").body["observations"] == 4


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_a_spool_that_is_gone_costs_safety_and_no_reward(server: Server, experiment: str, tmp_path: Path) -> None:
    """A disk that fails is logged; the rewards wait in memory and are sent."""
    with Client(server.url, spool=tmp_path / "spool", flush_seconds=60) as client:
        first, second = client.assign_many(experiment, count=2)
        client.reward_later(first, 1)
        shutil.rmtree(tmp_path / "spool")
        client.flush()
        client.reward_later(second, 1)
        assert client.flush()
        assert client.recommendation(experiment).observations == client.counts.rewards_sent == 2


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_lines_that_are_no_rewards_hold_nothing_up(server: Server, experiment: str, tmp_path: Path) -> None:
    """Whatever a disk made of them: they are logged, and the rewards around them are sent."""
    with Client(server.url) as asking:
        shown = [asking.assign(experiment) for _ in range(2)]
    good = [json.dumps({"experiment": experiment, "assignment": one.id, "reward": 1}) for one in shown]
    wrong: list[tuple[object, object]] = [
        ("asg_1", "1"),
        ("asg_1", None),
        ("asg_1", float("nan")),
        ("asg_1", 10**400),
        (7, 1),
        (None, 1),
    ]
    bad = [json.dumps({"experiment": experiment, "assignment": name, "reward": reward}) for name, reward in wrong]
    lines = [good[0], *bad, '{"experiment": 7, "unit": "u", "reward": 1}', "[]", "7", "[" * 100_000, "\udcff", "", good[1]]
    (tmp_path / "rewards-1-a.jsonl").write_text("\n".join(lines), errors="surrogateescape")
    with Client(server.url, spool=tmp_path, flush_seconds=0.01) as heir:
        assert heir.reward_later(heir.assign(experiment), 1)
        assert heir.flush()
        assert (heir.counts.rewards_sent, heir.counts.rewards_refused) == (3, 0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.process
def test_a_full_disk_spoils_one_line(tmp_path: Path) -> None:
    """What it has cut off waits in memory; the next line is whole again once there is room."""
    done = _run(
        """
        import os, resource, sys
        from bestarm import Client
        client = Client("http://127.0.0.1:9", spool=sys.argv[1], flush_seconds=60)
        for room in (resource.RLIM_INFINITY, 100, 100, resource.RLIM_INFINITY):
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
            assert client.reward_later("asg_" + "0" * 27, 1, experiment="e")
        assert client.counts.rewards_waiting == 4
        os._exit(0)
        """,
        str(tmp_path),
    )
    assert (done.returncode, done.stderr.count("waits in memory alone")) == (0, 2), done.stderr
    (left,) = tmp_path.iterdir()
    read = [line.endswith("}") for line in left.read_text().splitlines()]
    assert read == [True, False, True]


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_a_long_outage_takes_few_files_and_few_requests(proxy: FaultyProxy, experiment: str, tmp_path: Path) -> None:
    """However often it was tried meanwhile, what waits is sent together when the service is back."""
    with Client(proxy.url, spool=tmp_path, flush_seconds=0.01) as client:
        shown = client.assign_many(experiment, count=40)
        proxy.always, proxy.retry_after = "unavailable", "11"  # beyond what one try waits for
        for one in shown:
            assert client.reward_later(one, 1)
            client.flush(0.02)
        assert len(proxy.requests) > 10
        assert len(list(tmp_path.iterdir())) <= 2
        proxy.always = None
        proxy.requests.clear()
        assert client.flush(10)
        assert client.counts.rewards_sent == 40
        assert len(proxy.requests) <= 2


@pytest.mark.parametrize("fault", ["unavailable", "error", "not_found_page", "reset_before"])
@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_an_experiment_that_fails_holds_up_no_other(proxy: FaultyProxy, wire: JsonClient, key: str, fault: Fault) -> None:
    """Its rewards wait, for as long as the service asks; those of the others are sent meanwhile."""
    failing, well = (wire.create(f"{key}-{name}", arms=[{"key": "a"}, {"key": "b"}])["key"] for name in ("failing", "well"))
    proxy.retry_after = "600"
    with Client(proxy.url, flush_seconds=0.01, timeout=10) as client:
        stuck, others = client.assign_many(failing, count=2), client.assign_many(well, count=20)
        proxy.on_path[f"/{failing}/rewards"] = fault
        assert client.reward_later(stuck[0], 1)
        _wait_for(lambda: proxy.faulty > 0)
        for sent, one in enumerate(others, 1):
            assert client.reward_later(one, 1)
            _wait_for(lambda sent=sent: client.counts.rewards_sent == sent)  # type: ignore[misc]
        assert client.counts.rewards_waiting == 1
        proxy.on_path.clear()
        assert client.reward_later(stuck[1], 1)
        assert client.flush()
        assert client.recommendation(failing).observations == 2
        assert (client.counts.rewards_sent, client.counts.rewards_refused) == (22, 0)


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_an_experiment_that_fails_leaves_room_and_few_files(
    proxy: FaultyProxy, wire: JsonClient, key: str, tmp_path: Path
) -> None:
    """While the others are well it fills half of the queue, and keeps no file of theirs; alone it may fill all of it."""
    failing, well = (wire.create(f"{key}-{name}", arms=[{"key": "a"}, {"key": "b"}])["key"] for name in ("failing", "well"))
    proxy.retry_after = "600"
    with Client(proxy.url, flush_seconds=0.01, queue_size=20, spool=tmp_path) as client:
        stuck, others = client.assign_many(failing, count=20), client.assign_many(well, count=15)
        proxy.on_path[f"/{failing}/rewards"] = "unavailable"
        assert client.reward_later(stuck[0], 1)
        _wait_for(lambda: proxy.faulty > 0)
        assert all(client.reward_later(one, 1) for one in stuck[1:8])
        for sent, one in enumerate(others, 1):
            assert client.reward_later(one, 1)
            _wait_for(lambda sent=sent: client.counts.rewards_sent == sent)  # type: ignore[misc]
        assert [client.reward_later(one, 1) for one in stuck[8:12]] == [True, True, False, False]
        assert len(list(tmp_path.iterdir())) <= 2
        proxy.on_path.clear()
        assert client.close()
        assert client.counts.rewards_sent == 25
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_a_folder_of_two_services(server: Server, experiment: str, tmp_path: Path) -> None:
    """Rewards that a process left go to the service that they were told of, and to no other."""
    with Client(server.url) as asking:
        shown = asking.assign(experiment)
    nowhere = f"http://127.0.0.1:{free_port()}"
    dead = Client(nowhere, spool=tmp_path)
    assert dead.reward_later(shown, 1)
    assert not dead.close(0.01)
    left = list(tmp_path.iterdir())
    with Client(server.url, spool=tmp_path, flush_seconds=0.01) as other:
        assert other.reward_later(other.assign(experiment), 1)
        assert other.flush()
        assert (other.counts.rewards_sent, list(tmp_path.iterdir())) == (1, left)
    assert not Client(nowhere, spool=tmp_path).close(0.5)
    assert list(tmp_path.iterdir()) == left


def test_what_others_left_is_read_beside_rewards(tmp_path: Path) -> None:
    """However much it is: nobody who tells a reward waits for it, and who has everything sent is not told that it was."""
    nowhere = f"http://127.0.0.1:{free_port()}"
    dead = Client(nowhere, spool=tmp_path)
    assert dead.reward_later("asg_1", 1, experiment="e")
    assert not dead.close(0.01)
    (left,) = tmp_path.iterdir()
    lines = 50_000
    left.write_bytes(left.read_bytes() * lines)
    heir, told = Client(nowhere, spool=tmp_path, queue_size=2 * lines), 0
    assert not heir.flush(0.001)
    while heir.counts.rewards_waiting < lines:
        assert heir.reward_later("asg_2", 1, experiment="e")
        told += 1
        time.sleep(0.001)
    assert told > 10
    assert not heir.close(0.01)


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_an_outage_is_logged_seldom(
    proxy: FaultyProxy, experiment: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not once for each try; and a pause that ends in the year 10,000 is no reason to ask without one."""
    monkeypatch.setattr("bestarm.operations.core._QUIET_SECONDS", 600)
    with Client(proxy.url, flush_seconds=0.01) as client:
        shown = client.assign(experiment)
        proxy.always, proxy.retry_after = "unavailable", "9300000000000"
        assert client.reward_later(shown, 1)
        for tries in range(2, 6):
            assert not client.flush(0.01)
            _wait_for(lambda tries=tries: len(proxy.requests) >= tries)  # type: ignore[misc]
        assert len(proxy.requests) < 10
        told = [line.levelname for line in caplog.records if experiment in line.getMessage()]
        assert told.count("WARNING") == 1
        assert "ERROR" not in {line.levelname for line in caplog.records}
        proxy.always = None


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_a_flush_tries_again(proxy: FaultyProxy, experiment: str) -> None:
    """It does not wait for company: what failed is sent again as soon as that may help."""
    with Client(proxy.url, flush_seconds=60) as client:
        client.reward_later(client.assign(experiment), 1)
        proxy.faults.extend(["unauthorized"] * 2)
        assert client.flush(10)
        assert client.counts.rewards_sent == 1


def test_what_a_living_process_spools_is_its_own(tmp_path: Path) -> None:
    """A file that is held is not taken; one that is let go is."""
    nowhere = f"http://127.0.0.1:{free_port()}"
    first = Client(nowhere, spool=tmp_path)
    assert first.reward_later("asg_1", 1, experiment="e")
    second = Client(nowhere, spool=tmp_path)
    assert second.close(0.01)
    assert not first.close(0.01)
    assert len(list(tmp_path.iterdir())) == 1
    third = Client(nowhere, spool=tmp_path)
    assert not third.close(0.5)


@pytest.mark.process
def test_a_child_of_a_fork_begins_anew(server: Server, wire: JsonClient, experiment: str, tmp_path: Path) -> None:
    """Parent and children ask at once over a client that was used before; what waited is sent by the parent alone."""
    done = _run(
        """
        import os, sys
        from bestarm import Client
        client = Client(sys.argv[1], flush_seconds=60, spool=sys.argv[3])
        client.reward_later(client.assign(sys.argv[2]), 1)
        parent = {os.getpid()}
        for _ in range(2):
            if os.getpid() in parent:
                os.fork()
        shown = [client.assign(sys.argv[2]) for _ in range(50)]
        assert client.counts.rewards_waiting == (os.getpid() in parent)
        for one in shown:
            assert client.reward_later(one, 0)
        assert client.close()
        assert client.counts.rewards_sent == 50 + (os.getpid() in parent), client.counts
        if os.getpid() in parent:
            codes = [os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(2)]
            sys.exit(max(codes))
        """,
        server.url,
        experiment,
        str(tmp_path),
    )
    assert (done.returncode, done.stderr) == (0, "")
    seen = wire.send("GET", f"/v1/experiments/{experiment}/recommendation").body
    assert (seen["draws"], seen["observations"]) == (151, 151)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_threads_share_a_client(server: Server, experiment: str) -> None:
    """Each gets its own answers: every draw is there once."""
    with Client(server.url, max_connections=4) as shared, ThreadPoolExecutor(8) as threads:
        draws = list(threads.map(lambda unit: shared.assign(experiment, f"u{unit}"), range(200)))
        assert sorted(one.draw or 0 for one in draws) == list(range(1, 201))
        assert [one.unit for one in draws] == [f"u{number}" for number in range(200)]
