"""`bestarm experiment dump` and `load` as an operator types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from service.command_line.experiment_commands import check_settings
from service.storage.queries import stored_experiments
from testing.databases import NewDatabase
from testing.dumps import edited
from testing.program import typed
from testing.server import Server
from testing.varied_experiment import write_varied
from testing.workers import Workers

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def source(new_database: NewDatabase) -> str:
    """The URL of a database with an experiment `one`."""
    workers = Workers(new_database())
    write_varied(workers, "one")
    workers.close()
    return workers.url


def test_out_of_one_database_into_another_that_serves(source: str, new_database: NewDatabase, tmp_path: Path) -> None:
    """Dumped to a compressed file and loaded beside a running service, which has it at once and draws on."""
    file, url = tmp_path / "one.jsonl.gz", new_database()
    dumped = typed("experiment", "dump", "one", "--out", str(file), on=source)
    assert (dumped.returncode, dumped.stdout) == (0, "")
    assert dumped.stderr.startswith("one: ")
    with Server(url) as server, server.client() as client:
        loaded = typed("experiment", "load", str(file), on=url)
        assert (loaded.returncode, loaded.stdout) == (0, ""), loaded.stderr
        assert "events replayed, no difference." in loaded.stderr
        drawn = client.post("/v1/experiments/one/assignments", json={"unit": "new"}).json()["draw"]
        assert drawn == 85
        again = typed("experiment", "load", str(file), on=url)
        assert (again.returncode, again.stderr) == (2, "Not done: There is already an experiment 'one'.\n")
        renamed = typed("experiment", "load", str(file), "--as", "two", "--no-replay", on=url)
        assert (renamed.returncode, "two: " in renamed.stderr) == (0, True)
        kinds = [entry["kind"] for entry in client.get("/v1/log").json()["entries"]]
        assert kinds == ["experiment_loaded", "experiment_loaded"]
        [event] = client.get("/v1/experiments/two/events", params={"kind": "renamed"}).json()["events"]
        assert event["details"] == {"before": {"key": "one"}, "after": {"key": "two"}}
    replayed = typed("replay", "--all", on=url)
    assert replayed.returncode == 0, replayed.stdout
    assert [line.partition(":")[0] for line in replayed.stdout.splitlines()] == ["one", "two"]


def test_without_a_file_it_goes_to_the_output(source: str) -> None:
    """Whole lines of JSON, and nothing else; what is for people is not among them."""
    dumped = typed("experiment", "dump", "one", on=source)
    lines = [json.loads(line) for line in dumped.stdout.splitlines()]
    assert (lines[0]["bestarm"], set(lines[-1])) == ("experiment", {"rows", "sha256"})


def test_what_cannot_be_done_is_said_in_a_sentence(source: str, new_database: NewDatabase, tmp_path: Path) -> None:
    """No such experiment, a file that is there, one that is none, a key that is none; exit code 2 and no stack trace."""
    there, url = tmp_path / "there", new_database()
    there.write_text("notes\n")
    commands = [
        (("dump", "none"), "There is no experiment 'none'."),
        (("dump", "one", "--out", str(there)), "is there already."),
        (("dump", "one", "--out", str(tmp_path / "none" / "file")), "No such file or directory."),
        (("load", str(there)), "This is no file of `bestarm experiment dump`."),
        (("load", str(tmp_path / "none")), "cannot be read"),
        (("load", str(there), "--as", "Not a key"), "is no key"),
    ]
    for arguments, said in commands:
        refused = typed("experiment", *arguments, on=source if arguments[0] == "dump" else url)
        assert refused.returncode == 2
        assert said in refused.stderr
        assert "Traceback" not in refused.stderr
    assert there.read_text() == "notes\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["there"]


def test_a_difference_is_exit_code_one(source: str, new_database: NewDatabase, tmp_path: Path) -> None:
    """As with replay itself."""
    file = tmp_path / "one.jsonl"
    typed("experiment", "dump", "one", "--out", str(file), on=source)
    forged = edited(file, tmp_path / "forged", lambda table, row: [*row[:8], 9, *row[9:]] if table == "arms" else row)
    refused = typed("experiment", "load", str(forged), on=new_database())
    assert refused.returncode == 1
    assert "Not loaded: Replay finds a difference." in refused.stderr


def test_settings_that_the_api_took_are_taken_from_a_file(source: str) -> None:
    """All that an experiment can be described with passes the check that files go through."""
    workers = Workers(source)

    async def read() -> None:
        async with workers.contexts[0].database.reading() as connection:
            check_settings(await stored_experiments.experiment_by_key(connection, "one"))

    workers.run(read())
    workers.close()
