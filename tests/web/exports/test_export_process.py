"""What an export takes of a machine, however long its file."""

from __future__ import annotations

import asyncio
import io
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyarrow import parquet
from sqlalchemy import text

from service.application.live.export_frames import next_frame
from service.application.live.export_pace import PART
from service.application.reads.export import Exported, ExportOrder
from service.domain.file_formats import FILE_FORMATS, FileFormat
from service.storage.database import Database
from service.storage.row_streams.row_source import RowSource
from service.web.exports import export_process
from service.web.exports.export_file import FileOrder
from testing.databases import NewDatabase
from testing.workers import Workers

pytestmark = pytest.mark.process
_ROWS = 100_000
_MOST_BYTES = 50_000_000
_FILL = f"""WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {_ROWS})
INSERT INTO assignments (experiment_id, draw, token, sequence, arm, unit, reason, epoch, created_at, status, reward, closed)
SELECT id, n, n, n + 1, n % 5, 'user-' || n, 'track', 1, n, 'rewarded', n % 3 / 2.0, true
FROM numbers, experiments"""


async def _fill(database: Database) -> None:
    async with database.writing() as connection:
        await connection.execute(text(_FILL))
        await connection.execute(text(f"UPDATE experiments SET draws = {_ROWS}, version = {_ROWS + 1}"))


@pytest.fixture(scope="module")
def long(new_database: NewDatabase) -> RowSource:
    """A database with many draws of one experiment."""
    workers = Workers(new_database(), 1)
    workers.create("e", [(f"arm-{number}", 0.0) for number in range(5)])
    database = workers.contexts[0].database
    workers.run(_fill(database))
    workers.close()
    return database.row_source


def _anonymous(pid: int) -> int:
    """Bytes that only memory can hold."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("RssAnon"))


async def _file_in(frames: bytes) -> bytes:
    """The file that a process has written, which must be whole."""
    reader, content = asyncio.StreamReader(), b""
    reader.feed_data(frames)
    while (frame := await next_frame(reader)).kind != "ended":
        assert frame.kind in ("begun", "piece"), frame.content
        content += frame.content if frame.kind == "piece" else b""
    return content


def _exported(source: RowSource, of: Exported, form: FileFormat, frames: Path) -> tuple[bytes, int]:
    """A file as a process makes it, and the most memory that the process had meanwhile."""
    program, most = f"from {export_process.__name__} import main; main()", 0
    with frames.open("wb") as output:
        process = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=output)
        assert process.stdin is not None
        process.stdin.write(export_process.order_line(source, FileOrder(ExportOrder("e", of), form)))
        process.stdin.flush()
        while process.poll() is None:
            most = max(most, _anonymous(process.pid))
            time.sleep(0.005)
        process.stdin.close()
    return asyncio.run(_file_in(frames.read_bytes())), most


def test_it_loads_no_more_than_it_needs() -> None:
    """SQLAlchemy, which statements of its own do without, would be half of its memory and of its start."""
    loaded = "import sys; print(*{name.partition('.')[0] for name in sys.modules})"
    program = f"import {export_process.__name__}; {loaded}"
    found = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()
    assert "service" in found
    assert not {"sqlalchemy", "alembic", "fastapi", "numpy", "scipy", "pyarrow"} & set(found)


@pytest.mark.parametrize("form", FILE_FORMATS)
def test_its_memory_is_bounded(long: RowSource, form: FileFormat, tmp_path: Path) -> None:
    """Parquet, too, whose row groups are in memory until they are whole."""
    content, most = _exported(long, "assignments", form, tmp_path / "frames")
    assert 0 < most < _MOST_BYTES
    if form == "parquet":
        table = parquet.ParquetFile(io.BytesIO(content))
        assert table.metadata.num_rows == _ROWS
        groups = [table.metadata.row_group(number).num_rows for number in range(table.num_row_groups)]
        assert {*groups[:-1]} == {9_000}  # as docs/data.md says
    else:
        assert content.count(b"\n") == _ROWS + (form == "csv")


def _processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("form", FILE_FORMATS)
def test_beside_a_busy_worker_it_takes_a_part_of_a_processor(long: RowSource, form: FileFormat) -> None:
    """From its first bytes on. It is told so behind its order, and reads no more of its input than that."""
    program = f"from {export_process.__name__} import main; main()"
    command = [sys.executable, "-c", program]
    wanted = FileOrder(ExportOrder("e", "assignments", after=_ROWS // 2), form)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(export_process.order_line(long, wanted) + bytes([1]))
        frames = process.stdout.read(1)
        began, worked = time.monotonic(), _processor_seconds(process.pid)
        while more := process.stdout.read(65_536):
            frames += more
            seconds, work = time.monotonic() - began, _processor_seconds(process.pid) - worked
    assert asyncio.run(_file_in(frames))
    assert 0 < work < 1.5 * PART * seconds  # it is counted in hundredths of seconds, and what ends it is not paced


def test_the_course_has_what_it_is_computed_with(long: RowSource, tmp_path: Path) -> None:
    """What the process of other exports does without is there for it."""
    content, _ = _exported(long, "history", "parquet", tmp_path / "frames")
    assert parquet.read_table(io.BytesIO(content)).num_rows == 5
