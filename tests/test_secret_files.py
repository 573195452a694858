"""Secrets in files: read whole, whatever is in them, and never shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError
from sqlalchemy.engine import make_url

from service.secret_files import secret_in
from service.settings import Settings
from service.storage.database_url import display_url

# Every character that means something in a URL, in a shell, in SQL or in an .env file; spaces and a backslash at the end.
_PASSWORD = " p@ss:w/rd?#%20&=+ $HOME ${X} '\" `id` [:] \\"  # noqa: S105 - of no database


def test_a_secret_is_what_the_file_holds_but_for_the_end_of_its_line(tmp_path: Path) -> None:
    """Blanks and backslashes are a part of it."""
    file = tmp_path / "secret"
    for end in ("", "\n"):
        file.write_text(_PASSWORD + end)
        assert secret_in(file, "VARIABLE") == _PASSWORD


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "VARIABLE cannot be read: No such file or directory."),
        (b"\n", "VARIABLE is empty."),
        (b"hush-hush\xff", "VARIABLE is not a text in UTF-8."),
    ],
    ids=["absent", "empty", "bytes"],
)
def test_a_file_without_a_secret_is_named_by_its_variable(tmp_path: Path, content: bytes | None, said: str) -> None:
    """In a sentence that has nothing of the secret."""
    file = tmp_path / "secret"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ValueError, match="VARIABLE") as refused:
        secret_in(file, "VARIABLE")
    assert str(refused.value) == said


@pytest.mark.parametrize("url", ["postgresql://bestarm@db:5432/bestarm", "postgres://bestarm:old@/bestarm?host=/run/postgresql"])
def test_the_password_of_the_database_comes_from_its_file(tmp_path: Path, url: str) -> None:
    """It takes the place of any other, arrives whatever its characters are, and is not in what is shown of the URL."""
    file = tmp_path / "password"
    file.write_text(_PASSWORD + "\n")
    settings = Settings(database_url=url, database_password_file=file)
    assert make_url(settings.database_url) == make_url(url).set(password=_PASSWORD)
    assert "ss" not in display_url(settings.database_url).replace("postgres", "")


@pytest.mark.parametrize("url", ["sqlite:///bestarm.db", "nonsense"])
def test_a_database_without_passwords_is_left_as_it_is(tmp_path: Path, url: str) -> None:
    """What is wrong with a URL is said where it is opened."""
    file = tmp_path / "password"
    file.write_text("hush-hush")
    assert Settings(database_url=url, database_password_file=file).database_url == url


def test_a_password_that_cannot_be_read_is_a_wrong_setting(tmp_path: Path) -> None:
    """It is named before anything is opened."""
    with pytest.raises(ValidationError, match="BESTARM_DATABASE_PASSWORD_FILE cannot be read: No such file"):
        Settings(database_password_file=tmp_path / "absent")
