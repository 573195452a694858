"""A small OpenID Connect provider in a thread of its own: real HTTP, real signatures, nobody asks for a password."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import ECKey, KeySet

CLIENT_ID = "bestarm"
CLIENT_SECRET = "a secret of the tests"  # noqa: S105 - of the tests
PERSON = {"sub": "ann-1", "email": "ann@shop.example", "groups": ["analysts"]}


@dataclass
class Behaviour:
    """What the provider does; a test spoils what it is about."""

    person: dict[str, Any] = field(default_factory=lambda: dict(PERSON))
    claims: dict[str, Any] = field(default_factory=dict)
    """Claims of the id token instead of the right ones."""
    answer: dict[str, str] = field(default_factory=dict)
    """Parameters that the browser comes back with instead of the right ones."""
    in_id_token: bool = True
    """The groups are in the id token; else they must be asked for."""
    foreign_key: bool = False
    """The id token is signed by somebody else."""


class ProviderServer(ThreadingHTTPServer):
    """The provider. `localhost` is another site than the 127.0.0.1 of the services that tests start."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.issuer = f"http://localhost:{self.server_port}"
        self.behaviour = Behaviour()
        self.key = ECKey.generate_key("P-256", {"kid": "first"})
        self.codes: dict[str, dict[str, str]] = {}
        self.asked: list[str] = []
        """The paths that were asked for."""
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()

    def settings(self, public_url: str) -> dict[str, Any]:
        """The settings of a service that lets its accounts in, all of them text."""
        return {
            "BESTARM_PUBLIC_URL": public_url,
            "BESTARM_OIDC_ISSUER": self.issuer,
            "BESTARM_OIDC_CLIENT_ID": CLIENT_ID,
            "BESTARM_OIDC_CLIENT_SECRET": CLIENT_SECRET,
            "BESTARM_OIDC_SCOPES": "admins=admin, analysts=read",
        }

    def id_token(self, asked: dict[str, str]) -> str:
        """As the code's request wants it, but for what the test spoils."""
        now, behaviour = int(time.time()), self.behaviour
        person = {name: value for name, value in behaviour.person.items() if behaviour.in_id_token or name == "sub"}
        right = {"iss": self.issuer, "aud": CLIENT_ID, "iat": now, "exp": now + 300, "nonce": asked["nonce"]}
        key = ECKey.generate_key("P-256", {"kid": str(self.key.kid)}) if behaviour.foreign_key else self.key
        return jwt.encode({"alg": "ES256", "kid": self.key.kid}, right | person | behaviour.claims, key)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    server: ProviderServer

    def do_GET(self) -> None:
        """What it publishes, the page where people sign in, and what it knows of them."""
        url, issuer = urlsplit(self.path), self.server.issuer
        self.server.asked.append(url.path)
        if url.path == "/.well-known/openid-configuration":
            ends = {
                "authorization_endpoint": "authorize",
                "token_endpoint": "token",
                "jwks_uri": "keys",
                "userinfo_endpoint": "me",
            }
            self._answer({"issuer": issuer} | {name: f"{issuer}/{path}" for name, path in ends.items()})
        elif url.path == "/keys":
            self._answer(dict(KeySet([self.server.key]).as_dict(private=False)))
        elif url.path == "/me":
            self._answer(self.server.behaviour.person)
        elif url.path == "/authorize":
            self._authorize({name: values[0] for name, values in parse_qs(url.query).items()})
        else:
            self._answer({}, 404)

    def _authorize(self, asked: dict[str, str]) -> None:
        assert (asked["response_type"], asked["client_id"], asked["code_challenge_method"]) == ("code", CLIENT_ID, "S256")
        code = secrets.token_hex(8)
        self.server.codes[code] = asked
        query = {"code": code, "state": asked["state"], "session_state": "of-the-provider"} | self.server.behaviour.answer
        self.send_response(302)
        self.send_header("Location", f"{asked['redirect_uri']}?{urlencode({k: v for k, v in query.items() if v})}")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_POST(self) -> None:
        """Tokens for a code, once, for who asked for it."""
        form = {
            name: values[0] for name, values in parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode()).items()
        }
        self.server.asked.append(self.path)
        asked = self.server.codes.pop(form["code"], None)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).rstrip(b"=").decode()
        known = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
        if (
            asked is None
            or asked["code_challenge"] != challenge
            or asked["redirect_uri"] != form["redirect_uri"]
            or self.headers["Authorization"] != f"Basic {known}"
        ):
            self._answer({"error": "invalid_grant"}, 400)
            return
        self._answer({"access_token": "opaque", "token_type": "Bearer", "id_token": self.server.id_token(asked)})

    def _answer(self, content: dict[str, Any], status: int = 200) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Tests print what they want to be read."""
