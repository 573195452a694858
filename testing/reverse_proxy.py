"""nginx, haproxy and caddy as processes, with the configurations that deploy/proxies/ has for them."""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, Self, TypeAlias, get_args

from testing.server import free_port

ProxyKind: TypeAlias = Literal["nginx", "haproxy", "caddy"]
KINDS: tuple[ProxyKind, ...] = get_args(ProxyKind)
CONFIGURATIONS: dict[ProxyKind, str] = {"nginx": "nginx.conf", "haproxy": "haproxy.cfg", "caddy": "Caddyfile"}
SITE = "bestarm.example.com"
"""The name of the site in the configurations."""
_FOLDER = Path(__file__).parents[1] / "deploy/proxies"
_START_SECONDS = 60
_NGINX = """daemon off;
user {user};
worker_processes 1;
pid {folder}/pid;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/site.conf;
}}
"""
# A machine's own caddy and the certificates that it trusts are none of ours.
_CADDY = """{
	admin off
	skip_install_trust
	auto_https disable_redirects
	servers {"""


def replaced(text: str, changes: Mapping[str, str]) -> str:
    """The text with each of these, all of which must be there, replaced."""
    for old, new in changes.items():
        if old not in text:
            raise ValueError(f"{old!r} is not in the configuration.")
        text = text.replace(old, new)
    return text


class ReverseProxy:
    """A proxy before the services on two ports, and how to reach it: by TLS, on a port of its own.

    `changes` are what a test replaces in the configuration beside ports and paths.
    """

    def __init__(self, kind: ProxyKind, services: Sequence[int], folder: Path, changes: Mapping[str, str] | None = None) -> None:
        self.port = free_port()
        self.url = f"https://localhost:{self.port}"
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._certificate = folder / "certificate.pem"
        first, second = services
        configuration = replaced((_FOLDER / CONFIGURATIONS[kind]).read_text(), changes or {})
        environment = os.environ | {"XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "HOME": str(folder)}
        if kind == "caddy":
            self._certificate = folder / "caddy/pki/authorities/local/root.crt"
            (folder / "Caddyfile").write_text(replaced(configuration, {"{\n\tservers {": _CADDY}))
            environment |= {"BESTARM_SITE": f"localhost:{self.port}"}
            environment |= {"BESTARM_SERVICES": f"127.0.0.1:{first} 127.0.0.1:{second}"}
            command = ["caddy", "run", "--config", "Caddyfile", "--adapter", "caddyfile"]
        else:
            self._make_certificate()
            services_there = {"127.0.0.1:8000": f"127.0.0.1:{first}", "127.0.0.1:8001": f"127.0.0.1:{second}"}
            command = {"nginx": self._nginx, "haproxy": self._haproxy}[kind](configuration, services_there)
        with (folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
        self.trusting = self._wait_until_it_listens()
        """What trusts its certificate, and no other."""

    def _make_certificate(self) -> None:
        kind = ["-x509", "-newkey", "rsa:2048", "-noenc", "-days", "1", "-subj", f"/CN={SITE}"]
        names = ["-addext", f"subjectAltName=DNS:{SITE},DNS:localhost,IP:127.0.0.1"]
        key = self.folder / "key.pem"
        command: list[str | Path] = ["openssl", "req", *kind, *names, "-keyout", key, "-out", self._certificate]
        subprocess.run(command, check=True, capture_output=True)
        (self.folder / "both.pem").write_text(self._certificate.read_text() + key.read_text())

    def _nginx(self, configuration: str, services: Mapping[str, str]) -> list[str]:
        own = {
            "listen 443": f"listen 127.0.0.1:{self.port}",
            "/etc/ssl/bestarm/fullchain.pem": str(self._certificate),
            "/etc/ssl/bestarm/privkey.pem": str(self.folder / "key.pem"),
        }
        (self.folder / "site.conf").write_text(replaced(configuration, {**own, **services}))
        user = "root" if os.geteuid() == 0 else "nobody"  # whoever runs the tests owns the folder
        (self.folder / "nginx.conf").write_text(_NGINX.format(folder=self.folder, user=user))
        return ["nginx", "-p", str(self.folder), "-c", "nginx.conf", "-e", "stderr"]

    def _haproxy(self, configuration: str, services: Mapping[str, str]) -> list[str]:
        own = {"bind :443": f"bind 127.0.0.1:{self.port}", "/etc/haproxy/bestarm.pem": str(self.folder / "both.pem")}
        if os.geteuid() != 0:  # then it cannot become another user, and has no need to
            own |= {"    user haproxy\n    group haproxy\n    chroot /var/lib/haproxy\n": ""}
        (self.folder / "haproxy.cfg").write_text(replaced(configuration, {**own, **services}))
        return ["haproxy", "-db", "-f", "haproxy.cfg"]

    def _wait_until_it_listens(self) -> ssl.SSLContext:
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                trusting = ssl.create_default_context(cafile=self._certificate)
                with socket.create_connection(("127.0.0.1", self.port)) as plain:
                    trusting.wrap_socket(plain, server_hostname="localhost").close()
            except OSError:
                time.sleep(0.05)
            else:
                return trusting
        said = self.log()
        self.close()
        raise RuntimeError(f"The proxy does not start:\n{said}")

    def log(self) -> str:
        """What it has said on its standard output and error."""
        return (self.folder / "log").read_text()

    def close(self) -> None:
        """End the proxy and remove its folder."""
        self._process.terminate()
        self._process.wait(30)
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
