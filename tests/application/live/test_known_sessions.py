"""Sessions as two workers of one database know them: what ends them, and how soon."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from service.application.commands.manage_keys import NewKey, WantedKey, check, revoke
from service.application.commands.sign_in import NewSession, sign_in, sign_out
from service.application.live import known_sessions
from service.application.live.known_callers import REFRESH_SECONDS, KnownCallers
from service.domain import api_keys, browser_sessions
from service.domain.api_keys import ApiKey, digest_of
from service.domain.browser_sessions import account_id
from service.domain.callers import SERVICE, Caller
from service.domain.limits import MOST_SESSIONS, SESSION_SECONDS
from service.engine.clock import now_microseconds
from service.errors import Conflict, Forbidden, Unauthorized
from service.storage.database import Database
from service.storage.queries import change_follower, stored_api_keys, stored_sessions

ADMIN = "the administrator's key of this test"
GROUND = digest_of(b"the settings of a provider")
_SECOND = 1_000_000


class Place:
    """A database, and workers on it."""

    def __init__(self, url: str) -> None:
        self._runner = asyncio.Runner()
        self.database = Database(url, pool_size=4)

    def run(self, doing: Coroutine[Any, Any, Any]) -> Any:  # noqa: ANN401 - whatever it gives
        """Run to the end."""
        return self._runner.run(doing)

    def worker(self, admin_key: str | None = ADMIN, provider: bytes | None = None) -> KnownCallers:
        """One more worker, which knows what there is now."""
        callers = KnownCallers(self.database, admin_key, provider)
        self.run(callers.refresh())
        return callers

    def key(self, *, expires_in: int | None = None) -> NewKey:
        """A stored key that may read."""
        now = now_microseconds()
        expires_at = None if expires_in is None else now + expires_in
        check(WantedKey("a reader's", frozenset({"read"})), now)
        prefix, secret = api_keys.new_secret("secret")
        key = ApiKey(
            api_keys.new_key_id(), "secret", prefix, digest_of(secret.encode()), "a reader's", frozenset({"read"}), None, None,
            now, None, expires_at,
        )  # fmt: skip

        async def store() -> None:
            async with self.database.writing() as connection:
                await stored_api_keys.insert_key(connection, key)

        self.run(store())
        return NewKey(key, secret)

    def session(self, callers: KnownCallers, secret: str) -> NewSession:
        """Somebody signs in with this key."""
        caller = self.run(callers.identified(secret.encode()))
        made: NewSession = self.run(sign_in(self.database, caller, digest_of(secret.encode())))
        return made

    def who(self, callers: KnownCallers, made: NewSession) -> Caller | None:
        """Who comes with this session; None if it is refused."""
        try:
            caller: Caller = self.run(callers.signed_in(made.token.encode()))
        except Unauthorized:
            return None
        return caller

    def close(self) -> None:
        """Nothing is left."""
        self.run(self.database.close())
        self._runner.close()


@pytest.fixture
def place(database_url: str) -> Iterator[Place]:
    """A database for this test alone."""
    made = Place(database_url)
    yield made
    made.close()


def test_a_session_acts_as_its_key_in_every_worker(place: Place) -> None:
    """The same scopes, experiments and name in the history; a worker that has not heard of it looks."""
    made = place.key()
    here, there = place.worker(), place.worker()
    session = place.session(here, made.secret or "")
    for worker in (there, here):
        caller = place.who(worker, session)
        assert caller is not None
        assert (caller.scopes, caller.experiments, caller.actor) == (made.key.scopes, None, made.key.caller().actor)
        assert worker.still_takes(caller)


def test_it_ends_everywhere_with_its_key_and_by_signing_out(place: Place) -> None:
    """As soon as a worker has asked what is new, which is within two seconds; what it began ends as well."""
    made = place.key()
    here, there = place.worker(), place.worker()
    first, second = (place.session(here, made.secret or "") for _ in range(2))
    began = place.who(there, first), place.who(there, second)
    place.run(sign_out(place.database, first.token.encode()))
    place.run(there.refresh())
    assert (place.who(there, first), place.who(there, second)) == (None, began[1])
    assert [there.still_takes(caller) for caller in began if caller] == [False, True]
    place.run(revoke(place.database, SERVICE, made.key.id))
    place.run(there.refresh())
    assert place.who(there, second) is None
    assert not any(there.still_takes(caller) for caller in began if caller)
    assert REFRESH_SECONDS <= 1


def test_it_ends_with_its_key_s_expiry_and_after_its_own_time(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever comes first."""
    here = place.worker()
    short, long = place.key(expires_in=60 * _SECOND), place.key()
    first, second = (place.session(here, made.secret or "") for made in (short, long))
    assert first.session.expires_at == short.key.expires_at
    assert second.session.expires_at == second.session.created_at + SESSION_SECONDS * _SECOND
    assert None not in (place.who(here, first), place.who(here, second))
    for later, good in ((61, [False, True]), (SESSION_SECONDS + 1, [False, False])):
        _turn_clock(monkeypatch, later)
        assert [place.who(here, one) is not None for one in (first, second)] == good


def _turn_clock(monkeypatch: pytest.MonkeyPatch, seconds: int) -> None:
    def later() -> int:
        return now_microseconds() + seconds * _SECOND

    for module in ("known_callers", "known_sessions"):
        monkeypatch.setattr(f"service.application.live.{module}.now_microseconds", later)


def test_another_administrator_s_key_ends_the_sessions_of_the_old_one(place: Place) -> None:
    """And so do other settings of the provider, for those who signed in by it."""
    here = place.worker(provider=GROUND)
    session = place.session(here, ADMIN)
    account = Caller(frozenset({"read"}), account_id("somebody"), "somebody@shop.example")
    by_provider: NewSession = place.run(sign_in(place.database, account, GROUND))
    found = place.who(here, session), place.who(here, by_provider)
    assert [caller and caller.id for caller in found] == ["admin", "oidc:somebody"]
    assert all(here.still_takes(caller) for caller in found if caller)
    other = place.worker("another key of the administrator", digest_of(b"other settings"))
    assert (place.who(other, session), place.who(other, by_provider)) == (None, None)


@pytest.mark.parametrize(
    ("caller", "refusal"),
    [
        (Caller(frozenset({"assign"}), "key_1", "a page's", ("one",), ("https://shop.example",)), Forbidden),
        (Caller(frozenset({"admin"})), Conflict),
    ],
    ids=["public", "nobody"],
)
def test_who_cannot_sign_in(place: Place, caller: Caller, refusal: type[Exception]) -> None:
    """A key that everybody can read, and whoever is nobody in particular."""
    with pytest.raises(refusal):
        place.run(sign_in(place.database, caller, GROUND))


def test_only_so_many_sessions_of_one_key(place: Place) -> None:
    """One more ends the oldest; nobody else's."""
    here = place.worker()
    others = place.session(here, place.key().secret or "")
    made = [place.session(here, ADMIN) for _ in range(MOST_SESSIONS + 2)]
    place.run(here.refresh())
    assert [place.who(here, one) is not None for one in made] == [False] * 2 + [True] * MOST_SESSIONS
    assert place.who(here, others) is not None


def test_those_that_were_ended_fill_no_memory(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the last ones are remembered; one that is forgotten is refused as well, and those that are good stay."""
    monkeypatch.setattr(known_sessions, "_MOST_ENDED", 3)
    here = place.worker()
    good = place.session(here, ADMIN)
    ended = [place.session(here, ADMIN) for _ in range(5)]
    for one in ended:
        place.run(sign_out(place.database, one.token.encode()))
        place.run(here.refresh())
    known = [here.sessions.with_token(one.token.encode()) is not None for one in (good, *ended)]
    assert known == [True, False, False, True, True, True]
    assert [place.who(here, one) is not None for one in (good, *ended)] == [True] + [False] * 5


def test_many_sessions_are_learned_a_few_at_a_time(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them, in the end."""
    monkeypatch.setattr(change_follower, "_AT_ONCE", 2)
    here = place.worker()
    made = [place.session(here, ADMIN) for _ in range(5)]
    assert [place.who(place.worker(), one) is not None for one in made] == [True] * 5


def test_old_ones_are_swept(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """From memory and from the database; those that are good stay."""
    here = place.worker()
    place.session(here, ADMIN)
    place.run(here.refresh())
    place.run(here.sessions.sweep())

    async def stored() -> int:
        async with place.database.reading() as connection:
            return len(await stored_sessions.changed_since(connection, 0, 10))

    assert place.run(stored()) == 1
    _turn_clock(monkeypatch, SESSION_SECONDS + 3601)
    place.run(here.sessions.sweep())
    assert place.run(stored()) == 0


_NAMES: list[tuple[str, Callable[[str], bool]]] = [
    ("auth0|5f7c8ec7c33c6c004bbafe82", lambda name: name == "oidc:auth0|5f7c8ec7c33c6c004bbafe82"),
    ("x" * 255, lambda name: name.startswith("oidc:") and len(name) == 69),
    ("a name", lambda name: len(name) == 69),
    ("\N{GREEK SMALL LETTER ALPHA}", lambda name: len(name) == 69),
]


@pytest.mark.parametrize(("subject", "fits"), _NAMES, ids=["plain", "long", "spaces", "letters"])
def test_an_account_s_name_is_short_and_its_own(subject: str, fits: Callable[[str], bool]) -> None:
    """Whatever the provider calls it."""
    assert fits(account_id(subject))
    assert account_id(subject) != account_id(subject + "x")


def test_a_token_is_256_random_bits() -> None:
    """In 43 letters, which is all that is taken for one."""
    token = browser_sessions.new_token()
    assert browser_sessions.may_be_token(token.encode())
    assert not browser_sessions.may_be_token(token.encode() + b"a")
    assert token != browser_sessions.new_token()
