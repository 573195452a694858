"""A file of an experiment is known to be whole before anything of it is stored."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from service.application.copies.dump import dump
from service.application.copies.dump_file import DumpFile
from service.errors import ExperimentNotFound, InvalidValue
from testing.databases import NewDatabase
from testing.dumps import edited
from testing.varied_experiment import write_varied
from testing.workers import Workers


@pytest.fixture(scope="module")
def file(sqlite_databases: NewDatabase, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a small experiment."""
    workers = Workers(sqlite_databases())
    write_varied(workers, "one")
    path = tmp_path_factory.mktemp("dump") / "one.jsonl"
    with path.open("wb") as opened:
        rows = workers.run(dump(workers.contexts[0].database, "one", opened, lambda *_: None))
    workers.close()
    assert DumpFile(path).rows == rows
    return path


def refusal(path: Path) -> str:
    """Why this file is refused."""
    with pytest.raises(InvalidValue) as refused:
        DumpFile(path)
    return str(refused.value)


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9])
def test_a_file_that_was_cut_off_is_refused(file: Path, tmp_path: Path, part: float) -> None:
    """In the middle of a line or behind one, and also where its last line is cut."""
    content, cut = file.read_bytes(), tmp_path / "cut.jsonl"
    for length in (int(part * len(content)), content.rfind(b"\n", 0, int(part * len(content))) + 1, len(content) - 1):
        cut.write_bytes(content[:length])
        assert "cut off" in refusal(cut)


def test_a_file_that_was_changed_is_refused(file: Path, tmp_path: Path) -> None:
    """A byte of a row, a line that is missing, a line that is there twice."""
    content, changed = file.read_bytes(), tmp_path / "changed.jsonl"
    lines = content.splitlines(keepends=True)
    middle = len(lines) // 2
    for forged in (
        content.replace(b'"rewarded"', b'"expired"', 1),
        b"".join([*lines[:middle], *lines[middle + 1 :]]),
        b"".join([*lines[:middle], lines[middle], *lines[middle:]]),
    ):
        changed.write_bytes(forged)
        assert "not as it was written" in refusal(changed)


def test_a_compressed_file_is_known_by_its_bytes(file: Path, tmp_path: Path) -> None:
    """Whatever its name is; and one that was cut off or damaged is refused."""
    packed = tmp_path / "packed"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    assert list(DumpFile(packed).lines()) == list(DumpFile(file).lines())
    whole = packed.read_bytes()
    packed.write_bytes(whole[: len(whole) // 2])
    assert "in the middle" in refusal(packed)
    packed.write_bytes(whole[:200] + bytes(50) + whole[250:])
    assert refusal(packed)


@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"hello\n", b"{}\n", b"[" * 100_000 + b"\n", b'{"bestarm": "experiment"}\n', b"\xff\xfe\n", bytes(1000)],
    ids=["empty", "a blank line", "text", "an object", "deep", "half a header", "no text", "zeros"],
)
def test_any_other_file_is_refused(content: bytes, tmp_path: Path) -> None:
    """With a sentence that says what it is not."""
    path = tmp_path / "other"
    path.write_bytes(content)
    assert ("no file of `bestarm experiment dump`" in refusal(path)) or ("is empty" in refusal(path))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """One that is not there, and a folder."""
    assert str(tmp_path / "none") in refusal(tmp_path / "none")
    assert str(tmp_path) in refusal(tmp_path)


def test_another_format_is_named(file: Path, tmp_path: Path) -> None:
    """A later one says so itself; nobody guesses."""
    later = edited(file, tmp_path / "later.jsonl", lines=lambda found: [found[0] | {"format": 2}, *found[1:]])
    assert refusal(later) == "This is a file of format 2; this release reads format 1."


def test_an_experiment_that_is_not_there_makes_no_file(workers: Workers, tmp_path: Path) -> None:
    """Nor does one that was deleted and whose rows are still there."""
    workers.create("gone", [("a", 0.0), ("b", 0.0)])

    async def delete() -> None:
        async with workers.contexts[0].database.writing() as connection:
            await connection.exec_driver_sql("UPDATE experiments SET status = 'deleted'")

    workers.run(delete())
    with (tmp_path / "file").open("wb") as opened:
        for key in ("gone", "none"):
            with pytest.raises(ExperimentNotFound):
                workers.run(dump(workers.contexts[0].database, key, opened, lambda *_: None))
