"""Debian packages, unpacked into folders of the tests' own: nothing is installed, and nothing on the machine changes."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

# What neither programs nor their tests read.
_LEFT_OUT = ("./usr/share/doc", "./usr/share/man", "./usr/share/locale", "./usr/share/doc-base")


class NoContainers(RuntimeError):  # noqa: N818 - a sentence for whoever runs the tests
    """What is missing on this machine, in one sentence."""


def require_bookworm() -> None:
    """Raise unless this is the Debian whose Python and PostgreSQL the stand-ins are made of."""
    release = Path("/etc/os-release")
    if not release.exists() or 'VERSION_ID="12"' not in release.read_text():
        raise NoContainers("The container tests make their images of Debian 12's packages, and this is not Debian 12.")


def download(folder: Path, *packages: str) -> list[Path]:
    """These packages alone."""
    folder.mkdir(parents=True, exist_ok=True)
    _apt("download", *packages, cwd=folder)
    return sorted(folder.glob("*.deb"))


def download_with_all_they_need(folder: Path, *packages: str) -> list[Path]:
    """These packages and whatever they depend on, down to the C library, as for an empty machine."""
    (folder / "partial").mkdir(parents=True, exist_ok=True)
    empty = folder / "status"
    empty.touch()
    options = {
        "Dir::State::status": empty,
        "Dir::Cache::archives": folder,
        "APT::Install-Recommends": "false",
        "APT::Sandbox::User": "root",
        "Debug::NoLocking": "1",
    }
    given = [part for name, value in options.items() for part in ("-o", f"{name}={value}")]
    _apt(*given, "--yes", "--download-only", "install", *packages, cwd=folder)
    return sorted(folder.glob("*.deb"))


def unpack(packages: Sequence[Path], folder: Path) -> None:
    """The files of these packages, as they would lie below `/`."""
    folder.mkdir(parents=True, exist_ok=True)
    excluded = [f"--exclude={pattern}" for pattern in _LEFT_OUT]
    for package in packages:
        with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE) as files:
            subprocess.run(["tar", "x", "-C", folder, "--keep-directory-symlink", *excluded], stdin=files.stdout, check=True)
        if files.returncode:
            raise NoContainers(f"{package.name} cannot be unpacked.")


def _apt(*arguments: str, cwd: Path) -> None:
    """Run apt-get; where its lists are missing or old, bring them up to date once."""
    for is_last in (False, True):
        done = subprocess.run(["apt-get", "-q", *arguments], cwd=cwd, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return
        if is_last:
            said = (done.stderr.strip().splitlines() or ["nothing"])[-1]
            raise NoContainers(f"The container tests need Debian's packages, and apt-get says: {said}")
        subprocess.run(["apt-get", "-q", "update"], capture_output=True, check=False)
