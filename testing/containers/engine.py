"""A Docker engine for the tests: Debian's, in namespaces of its own, with a network of its own by slirp4netns.

It is not installed, shares no image, container or network with an engine that may be on the machine, and is gone with the
process that started it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from typing import Self

from testing.containers.debian import NoContainers, download, require_bookworm, unpack
from testing.server import free_port

_HERE = Path(__file__).parent
_PACKAGES = (
    *("docker.io", "containerd", "runc", "tini", "libbtrfs0", "docker-registry"),
    *("iptables", "libip4tc2", "libip6tc2", "libnetfilter-conntrack3", "libnfnetlink0", "libnftnl11", "libxtables12"),
    *("slirp4netns", "libslirp0"),
)
_NAMESPACES = ("--mount", "--net", "--pid", "--uts", "--ipc")
_START_SECONDS = 60
_REGISTRY_PORT = 5000


def require_namespaces() -> None:
    """Raise a sentence that says what is missing, where no engine can be started."""
    if os.geteuid() != 0:
        raise NoContainers("The container tests start a Docker engine of their own, for which they must be root.")
    require_bookworm()
    tried = subprocess.run(["unshare", *_NAMESPACES, "--fork", "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        raise NoContainers(f"The container tests need namespaces of their own, and there are none: {tried.stderr.strip()}")
    if not Path("/dev/net/tun").exists():
        raise NoContainers("The container tests need /dev/net/tun, which gives their engine a network.")


def wait_for_network(network: subprocess.Popen[bytes], inside: str, log: Path) -> None:
    """Wait until the process inside has the device that `network` makes; raise a sentence, if it cannot come any more."""
    deadline = time.monotonic() + _START_SECONDS
    while "tap0" not in Path(f"/proc/{inside}/net/dev").read_text():
        if time.monotonic() > deadline or network.poll() is not None:
            raise NoContainers(f"The Docker engine gets no network: {_last_words(log)}")
        time.sleep(0.05)


def _last_words(log: Path) -> str:
    said = [line for line in log.read_text().splitlines() if "level=info" not in line]
    return (said or ["it says nothing"])[-1]


class ContainerEngine:
    """A running engine; its files, images and containers are in `folder`."""

    def __init__(self, folder: Path) -> None:
        require_namespaces()
        self.folder = folder
        self._installed = folder / "engine"
        unpack(download(folder / "packages", *_PACKAGES), self._installed)
        for name in ("iptables", "ip6tables"):  # the engine's own tables need no newer kernel interface
            (self._installed / "usr/sbin" / name).unlink(missing_ok=True)
            (self._installed / "usr/sbin" / name).symlink_to("xtables-legacy-multi")
        self._processes: list[subprocess.Popen[bytes]] = []
        self._cgroup = f"bestarm-tests-{os.getpid()}"
        self.environment = self._client_environment()
        self._start()

    def _client_environment(self) -> dict[str, str]:
        """What makes `docker` and its compose plugin talk to this engine.

        Images are built by the engine itself: BuildKit would want to fetch one more.
        """
        plugins = self.folder / "client/cli-plugins"
        plugins.mkdir(parents=True)
        (plugins / "docker-compose").symlink_to(Path(sys.executable).parent / "docker-compose")
        usr, libraries = self._installed / "usr", f"lib/{sysconfig.get_config_var('MULTIARCH')}"
        return {
            "PATH": f"{usr}/sbin:{usr}/bin:{os.environ['PATH']}",
            "LD_LIBRARY_PATH": f"{usr / libraries}",
            "XTABLES_LIBDIR": f"{usr / libraries}/xtables",
            "HOME": str(self.folder),
            "DOCKER_HOST": f"unix://{self.folder}/socket",
            "DOCKER_CONFIG": f"{self.folder}/client",
            "DOCKER_BUILDKIT": "0",
        }

    def _start(self) -> None:
        inside = self._spawn("unshare", *_NAMESPACES, "--fork", "--kill-child", sys.executable, _HERE / "first_process.py")
        deadline = time.monotonic() + _START_SECONDS
        while self.run("docker", "version", check=False).returncode:
            if time.monotonic() > deadline or inside.poll() is not None:
                self.close()
                raise NoContainers(f"The Docker engine does not start: {_last_words(self.folder / 'log')}")
            time.sleep(0.1)
        (self._first,) = Path(f"/proc/{inside.pid}/task/{inside.pid}/children").read_text().split()
        network = self._spawn("slirp4netns", "--configure", "--mtu=1400", "--disable-host-loopback", self._first, "tap0")
        try:
            wait_for_network(network, self._first, self.folder / "log")
        except NoContainers:
            self.close()
            raise

    def _spawn(self, *command: str | Path) -> subprocess.Popen[bytes]:
        with (self.folder / "log").open("ab") as log:
            started = subprocess.Popen(
                # Whatever becomes of this process, what it started ends with it.
                ["setpriv", "--pdeathsig", "KILL", *map(str, command)],
                cwd=self.folder,
                env=self.environment | {"CGROUP_PARENT": self._cgroup},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._processes.append(started)
        return started

    def run(self, *command: str | Path, cwd: Path | None = None, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run `docker …` against this engine."""
        done = subprocess.run(
            [*map(str, command)],
            cwd=cwd or self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if check and done.returncode:
            raise RuntimeError(f"{' '.join(map(str, command))}\n{done.stdout[-4_000:]}{done.stderr[-4_000:]}")
        return done

    def import_image(self, root: Path, tag: str, *changes: str) -> None:
        """An image of the files below a folder."""
        given = [part for change in changes for part in ("--change", change)]
        command = [str(part) for part in ("docker", "import", *given, "-", tag)]
        with subprocess.Popen(["tar", "c", "-C", root, "."], stdout=subprocess.PIPE) as files:
            subprocess.run(command, env=self.environment, stdin=files.stdout, capture_output=True, check=True)
        if files.returncode:
            raise RuntimeError(f"{root} cannot be read.")

    def start_registry(self) -> str:
        """A registry of images inside; where it is."""
        stored = self.folder / "registry"
        settings = self.folder / "registry.yml"
        settings.write_text(
            f"version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {stored}}}}}\n"
            f"http: {{addr: 127.0.0.1:{_REGISTRY_PORT}}}\n"
        )
        self._spawn(*self.inside(), "docker-registry", "serve", settings)
        return f"127.0.0.1:{_REGISTRY_PORT}"

    def inside(self) -> list[str]:
        """The command that runs another one in the engine's network, where its containers publish their ports."""
        return ["nsenter", "--target", self._first, "--net"]

    def relay(self, port: int) -> int:
        """A port of this machine that leads to 127.0.0.1:`port` of the engine's network."""
        here = free_port()
        self._spawn(sys.executable, _HERE / "relay.py", str(here), str(port), self._first)
        return here

    def close(self) -> None:
        """End the engine and all its containers."""
        for process in reversed(self._processes):
            process.kill()  # `unshare` hears no other signal; the first process of its namespaces ends with it, and with that all
            process.wait()
        for group in Path("/sys/fs/cgroup").glob(f"**/{self._cgroup}"):
            subprocess.run(["find", group, "-depth", "-type", "d", "-exec", "rmdir", "{}", "+"], capture_output=True, check=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        shutil.rmtree(self.folder / "data", ignore_errors=True)
