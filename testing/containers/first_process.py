"""The first process in the engine's namespaces: gives them /proc, /run and a loopback device, then becomes the engine."""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import subprocess
from pathlib import Path

_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1


def _raise_loopback() -> None:
    """A new network has a loopback device that is down."""
    with socket.socket() as any_socket:
        asked = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(any_socket, _SIOCGIFFLAGS, asked))[1]
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | _IFF_UP))


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


def main() -> None:
    """Everything that must be so before the engine starts."""
    folder = Path.cwd()
    _mount("--make-rprivate", "/")
    _mount("-t", "proc", "proc", "/proc")
    _mount("-t", "tmpfs", "tmpfs", "/run")
    _raise_loopback()
    (folder / "daemon.json").write_text("{}")  # not the one of this machine
    os.execvp(  # noqa: S606 - no shell is wanted
        "dockerd",
        [
            "dockerd",
            *("--config-file", str(folder / "daemon.json")),
            *("--data-root", str(folder / "data")),
            *("--exec-root", "/run/docker"),
            *("--pidfile", "/run/dockerd.pid"),
            *("--host", f"unix://{folder}/socket"),
            *("--cgroup-parent", os.environ["CGROUP_PARENT"]),
        ],
    )


if __name__ == "__main__":
    main()
