"""Settings that are secret: read as operators leave them, and never repeated."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from service.settings import Settings

_KEY = "a key of the administrator's"


def test_an_admin_key_may_end_with_a_line_break(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In its variable as in its file; no header could hold it."""
    monkeypatch.setenv("BESTARM_ADMIN_KEY", f"{_KEY}\n")
    assert Settings().admin_key_in_use() == _KEY
    file = tmp_path / "key"
    file.write_text(f"{_KEY}\n")
    monkeypatch.setenv("BESTARM_ADMIN_KEY", " ")
    assert Settings().admin_key_in_use() is None
    monkeypatch.setenv("BESTARM_ADMIN_KEY_FILE", str(file))
    assert Settings().admin_key_in_use() == _KEY


def test_a_setting_that_is_wrong_repeats_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even where a worker ends with the whole error in its log."""
    monkeypatch.setenv("BESTARM_ADMIN_KEY", "hush-hush")
    monkeypatch.setenv("BESTARM_OIDC_CLIENT_SECRET", "hush-too")
    with pytest.raises(ValidationError) as wrong:
        Settings()
    assert "BESTARM_ADMIN_KEY" in str(wrong.value)
    assert "hush" not in str(wrong.value)
