"""Finished blocks are kept, and nothing else is taken for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.errors import InvalidValue
from service.simulation.finished_blocks import FILE_NAME
from tests.simulation.quiet_sessions import CELLS, quiet_session


def test_an_interrupted_study_goes_on(tmp_path: Path) -> None:
    """Finished blocks are not played again; a line cut off by a crash is."""
    with quiet_session(tmp_path) as first:
        whole = [result.errors for result in first.play(CELLS, "whole")]
    file = tmp_path / FILE_NAME
    lines = file.read_text().splitlines(keepends=True)
    file.write_text(lines[0] + lines[1] + lines[2][:25])
    with quiet_session(tmp_path) as second:
        again = [result.errors for result in second.play(CELLS, "again")]
    assert again == whole
    assert file.read_text().startswith(lines[0] + lines[1])
    assert len(file.read_text().splitlines()) == len(lines)


@pytest.mark.parametrize("text", ["not json\n", '{"other": 1}\n', "[]\n"])
def test_a_foreign_file_is_refused(tmp_path: Path, text: str) -> None:
    """With a sentence, and left as it is."""
    (tmp_path / FILE_NAME).write_text(text)
    with pytest.raises(InvalidValue, match="does not hold the parts of a study"):
        quiet_session(tmp_path)
    assert (tmp_path / FILE_NAME).read_text() == text
