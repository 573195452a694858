"""Stand-ins for the official images, made of Debian's packages: there is no registry to fetch the real ones from.

They have what the compose file uses of the real ones: the same programs in another version, the same paths, users, volumes and
signals, and as much of their entrypoints. What only the real ones can show, no test here has seen.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from testing.containers.debian import download, download_with_all_they_need, unpack
from testing.containers.engine import ContainerEngine

_STAND_INS = Path(__file__).parent / "stand_ins"
_PYTHON = "python:3.11-slim-bookworm"
_NEEDED = (
    *(
        "base-files",
        "base-passwd",
        "bash",
        "coreutils",
        "dash",
        "diffutils",
        "findutils",
        "grep",
        "sed",
        "hostname",
        "passwd",
        "login",
    ),
    *("libc-bin", "python3", "python3.11-venv", "ca-certificates", "netbase", "postgresql-15", "gosu"),
)
# Of these nothing but their program is wanted.
_ALONE = ("prometheus", "caddy")


def make_base_images(engine: ContainerEngine, images: dict[str, str]) -> None:
    """The image of Python, and those of the folders of `stand_ins`, under the names that the compose file has for them."""
    root = engine.folder / "root"
    unpack(download_with_all_they_need(engine.folder / "root-packages", *_NEEDED), root)
    unpack(download(engine.folder / "program-packages", *_ALONE), root)
    _complete(root)
    engine.import_image(
        root,
        _PYTHON,
        "ENV PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin",
        "ENV LANG=C.UTF-8",
        "ENV PIP_CERT=/etc/ssl/certs/ca-certificates.crt",
    )
    for folder, name in images.items():
        engine.run("docker", "build", "--tag", name, _STAND_INS / folder)


def _complete(root: Path) -> None:
    """What the packages' own scripts would have done."""
    for name in ("passwd", "group"):
        shutil.copy(root / f"usr/share/base-passwd/{name}.master", root / f"etc/{name}")
    for name in ("shadow", "gshadow"):
        (root / f"etc/{name}").touch(0o640)
    (root / "usr/local/bin").mkdir(parents=True, exist_ok=True)
    (root / "usr/local/bin/python").symlink_to("/usr/bin/python3.11")
    (root / "tmp").mkdir(exist_ok=True)
    (root / "tmp").chmod(0o1777)
    certificates = root / "etc/ssl/certs"
    certificates.mkdir(parents=True, exist_ok=True)
    shutil.copy("/etc/ssl/certs/ca-certificates.crt", certificates)
