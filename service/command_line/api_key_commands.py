"""`bestarm keys`: the operator's way to keys, past the API and straight to the database."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Annotated, cast

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from service.application.commands import manage_keys
from service.application.commands.idempotency import Once
from service.application.commands.manage_keys import NewKey, WantedKey
from service.command_line.console import done, refuse, say, seconds_of
from service.domain.api_keys import ApiKey, ApiKeyKind
from service.domain.callers import SCOPES, SERVICE, Scope
from service.domain.limits import LONGEST_GRACE_SECONDS, LONGEST_LABEL
from service.engine.clock import now_microseconds
from service.storage.database import Database
from service.storage.queries import stored_api_keys

commands = typer.Typer(no_args_is_help=True, help="Keys of the API: create, list, revoke, rotate.")
_MOST_LISTED = 10_000


def _time(at: int | None) -> str:
    return "" if at is None else f"{datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at):%Y-%m-%d %H:%M:%SZ}"


def _shown(made: NewKey) -> bytes:
    return json.dumps({"id": made.key.id, "secret": made.secret}).encode()


def _once() -> Once[NewKey]:
    return Once("keys", None, "", creates=True, render=_shown)


def _hand_over(written: bytes) -> None:
    """The secret alone goes to the output, so that it can be piped into where it is kept."""
    made = json.loads(written)
    say.print(f"Key {made['id']}. Its secret is shown this once:")
    typer.echo(made["secret"])


@commands.command("create")
def create(
    label: Annotated[str, typer.Option(help="What it is for.")],
    scope: Annotated[list[str], typer.Option(help=f"One or more of {', '.join(SCOPES)}.")],
    experiment: Annotated[list[str] | None, typer.Option(help="A key of an experiment, or a pattern as 'checkout-*'.")] = None,
    expires_in: Annotated[str | None, typer.Option(help="How long it is good: 90d, 12h.")] = None,
    origin: Annotated[list[str] | None, typer.Option(help="Makes it a public key, for pages of this origin.")] = None,
) -> None:
    """Create a key and print its secret, this once."""
    unknown = sorted(set(scope) - set(SCOPES))
    if unknown or not 1 <= len(label) <= LONGEST_LABEL:
        refuse("Not done", f"There is no scope {unknown[0]!r}." if unknown else "A label has 1 to 100 characters.", code=2)
    kind: ApiKeyKind = "public" if origin else "secret"
    wanted = WantedKey(
        label,
        frozenset(cast("list[Scope]", scope)),
        tuple(experiment) if experiment else None,
        None if expires_in is None else now_microseconds() + seconds_of(expires_in) * 1_000_000,
        kind,
        tuple(one.lower() for one in origin) if origin else None,
    )
    _hand_over(done(lambda database: manage_keys.create(database, SERVICE, wanted, _once())).written())


@commands.command("list")
def list_keys() -> None:
    """All keys, newest first, without their secrets."""

    async def read(database: Database) -> list[tuple[int, ApiKey]]:
        async with database.reading() as connection:
            return await stored_api_keys.page_of_keys(connection, before=None, limit=_MOST_LISTED)

    table = Table("id", "prefix", "label", "scopes", "experiments", "status", "last used", "expires", box=None)
    now = now_microseconds()
    for _, key in done(read):
        seen = "all" if key.experiments is None else ", ".join(key.experiments)
        times = _time(key.last_used_at), _time(key.expires_at)
        # A label is anybody's words: brackets in it are no markup.
        table.add_row(key.id, key.prefix, escape(key.label), ", ".join(sorted(key.scopes)), seen, key.status_at(now), *times)
    Console(soft_wrap=True, width=None if say.is_terminal else 200).print(table)


@commands.command("revoke")
def revoke(key: Annotated[str, typer.Argument(help="Its id, key_….")]) -> None:
    """Revoke a key: within two seconds nobody takes it any more."""
    revoked = done(lambda database: manage_keys.revoke(database, SERVICE, key))
    say.print(f"{revoked.id} ({escape(revoked.label)}) is revoked.")


@commands.command("rotate")
def rotate(
    key: Annotated[str, typer.Argument(help="Its id, key_….")],
    grace: Annotated[str, typer.Option(help="How long the old one is still good.")] = "1h",
) -> None:
    """Create a successor and print its secret; the old key is good for a while and no longer."""
    seconds = seconds_of(grace)
    if seconds > LONGEST_GRACE_SECONDS:
        refuse("Not done", "The grace period is at most 30 days.", code=2)
    _hand_over(done(lambda database: manage_keys.rotate(database, SERVICE, key, seconds, _once())).written())


def register(app: typer.Typer) -> None:
    """Add them to the program."""
    app.add_typer(commands, name="keys")
