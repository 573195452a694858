"""Which names a service answers to."""

from __future__ import annotations

import pytest

from service.web.hosts import AllowedHosts, is_loopback

_LOOPBACK = [
    b"localhost",
    b"LOCALHOST:8000",
    b"localhost.",
    b"127.0.0.1",
    b"127.0.0.1:8000",
    b"127.9.8.7",
    b"[::1]",
    b"[::1]:8000",
]
_FOREIGN = [b"evil.example", b"evil.example:8000", b"localhost.evil.example", b"127.0.0.1.evil.example", b"10.0.0.1", b"[::2]"]
_NO_NAMES = [b"", b" ", b"a b", b"a/b", b"a@b", b"a,b", b"[::1", b"a:b", b"a:999999", b"\xff", b"a\x00", b"http://localhost"]


@pytest.mark.parametrize("listening", ["127.0.0.1", "localhost", "::1", "0.0.0.0", "10.1.2.3"])  # noqa: S104 - to be looked at only
@pytest.mark.parametrize("names", [[], ["bestarm.example", "*.corp.example"]])
def test_loopback_names_are_its_own_everywhere(listening: str, names: list[str]) -> None:
    """No page of another site can have one, so whoever uses one means this machine."""
    hosts = AllowedHosts(listening, names)
    assert [hosts.accepts(host) for host in _LOOPBACK] == [True] * len(_LOOPBACK)
    assert [hosts.accepts(host) for host in _NO_NAMES] == [None] * len(_NO_NAMES)


def test_other_names_must_be_allowed() -> None:
    """On loopback always; elsewhere as soon as there is a list."""
    assert not any(AllowedHosts("127.0.0.1", []).accepts(host) for host in _FOREIGN)
    assert all(AllowedHosts("0.0.0.0", []).accepts(host) for host in _FOREIGN)  # noqa: S104 - see above
    for listening in ("127.0.0.1", "10.1.2.3"):
        listed = AllowedHosts(listening, ["Bestarm.example", "*.corp.example", "10.0.0.1"])
        assert not any(
            listed.accepts(host) for host in (*_FOREIGN[:4], b"corp.example", b"evilcorp.example", b"a.bestarm.example")
        )
        assert all(
            listed.accepts(host) for host in (b"bestarm.EXAMPLE:80", b"a.corp.example", b"a.b.corp.example", b"10.0.0.1:8000")
        )


def test_without_keys_no_made_up_name_leads_to_it() -> None:
    """Addresses and loopback's names do, which no page of another site can let lead here; other names once they are listed."""
    insecure = AllowedHosts("10.1.2.3", [], insecure=True)
    assert [insecure.accepts(host) for host in _FOREIGN] == [False] * 4 + [True] * 2
    assert all(insecure.accepts(host) for host in _LOOPBACK)
    assert AllowedHosts("10.1.2.3", ["evil.example"], insecure=True).accepts(b"evil.example:8000")
    assert not AllowedHosts("127.0.0.1", [], insecure=True).accepts(b"10.1.2.3")


def test_made_up_names_do_not_fill_the_memory() -> None:
    """What was accepted is remembered, but not everything for ever."""
    hosts = AllowedHosts("10.1.2.3", [])
    for number in range(1_000):
        assert hosts.accepts(b"host-%d.example" % number)
    assert 0 < len(hosts.accepted) <= 64
    assert hosts.accepts(b"host-0.example")


@pytest.mark.parametrize(
    ("name", "is_one"), [("localhost", True), ("127.0.0.2", True), ("::1", True), ("10.0.0.1", False), ("a", False)]
)
def test_loopback(name: str, is_one: bool) -> None:  # noqa: FBT001 - parametrized
    """All of 127.0.0.0/8 is."""
    assert is_loopback(name) is is_one
