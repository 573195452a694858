"""Other releases than this checkout: the one before, built from its commit, and one to come, which has more migrations."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from testing.installation import ROOT, build, install


class Release(NamedTuple):
    """What docs/releases.md says of one."""

    commit: str
    migration: str


def release_before() -> Release:
    """The one that this checkout must run beside."""
    found = re.search(r"\| `([0-9a-f]{40})` \| (\d{4}) \|", (ROOT / "docs/releases.md").read_text())
    if found is None:
        raise RuntimeError("docs/releases.md names no commit of the release before this one.")
    return Release(found[1], found[2])


def install_release(release: Release, folder: Path) -> Path:
    """Build it from its commit and install it with the dependencies that it locked; its command `bestarm`."""
    commit = release.commit
    archive, source = folder / "source.tar", folder / "source"
    command = ["git", "archive", "--output", str(archive), commit]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(
            f"The release before this one is built from commit {commit}, as docs/releases.md says, and this clone does not have "
            f"it (git says: {done.stderr.strip()}). A shallow clone gets it by `git fetch --unshallow`."
        )
    shutil.unpack_archive(archive, source, filter="data")
    wheel = build(folder / "dist", only_wheel=True, source=source)
    return install(wheel, folder / "venv", locked=source / "requirements/service.txt")


_MIGRATION = '''"""A migration that a later release brings."""

import sqlalchemy as sa
from alembic import op

revision = {revision!r}
down_revision = {before!r}
{promise}


def upgrade() -> None:
    {steps}


def downgrade() -> None:
    """Never."""
'''


class Migration(NamedTuple):
    """A migration that is not there yet."""

    revision: str
    before: str
    steps: str
    compatible_with: str | None = None

    def text(self) -> str:
        """As a file."""
        promise = "" if self.compatible_with is None else f"compatible_with = {self.compatible_with!r}"
        return _MIGRATION.format(revision=self.revision, before=self.before, promise=promise, steps=self.steps)


def release_to_come(folder: Path, *migrations: Migration) -> Path:
    """This checkout with more migrations, in a folder of its own where `python -m service` runs it."""
    for part in ("service", "migrations"):
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    for migration in migrations:
        (folder / f"migrations/versions/{migration.revision}_to_come.py").write_text(migration.text())
    return folder
