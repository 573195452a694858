"""A file is there whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.errors import Conflict, InvalidValue
from service.whole_file import whole_file


def test_what_was_written_is_there_at_the_end(tmp_path: Path) -> None:
    """Not before, and for its owner's eyes only; nothing else is left."""
    target = tmp_path / "file"
    with whole_file(target) as part:
        part.write_text("whole")
        assert not target.exists()
    assert (target.read_text(), target.stat().st_mode & 0o777) == ("whole", 0o600)
    assert list(tmp_path.iterdir()) == [target]


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    """Whatever was written until then."""
    target = tmp_path / "file"
    target.write_text("before")

    def write() -> None:
        with whole_file(target, replace=True) as part:
            part.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write()
    assert (target.read_text(), list(tmp_path.iterdir())) == ("before", [target])


def test_nothing_is_replaced_unless_that_is_said(tmp_path: Path) -> None:
    """And a folder that is not there is named."""
    target = tmp_path / "file"
    target.write_text("before")
    with pytest.raises(Conflict, match="there already"), whole_file(target):
        pass
    with pytest.raises(InvalidValue, match="No such file"), whole_file(tmp_path / "none" / "file"):
        pass
