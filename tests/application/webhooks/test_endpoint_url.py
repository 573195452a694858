"""Addresses of endpoints: what is no address, or spells one that may not be called, is refused before anything is stored."""

from __future__ import annotations

import pytest

from service.application.webhooks.endpoint_url import read_url
from service.domain.network_addresses import AllowedNetworks
from service.errors import InvalidValue

_REFUSED = {
    "loopback": "http://127.0.0.1/",
    "loopback with a port": "https://127.0.0.1:8443/hooks",
    "decimal": "http://2130706433/",
    "octal": "http://0177.0.0.1/",
    "octal as a whole": "http://017700000001/",
    "hexadecimal": "http://0x7f.0x0.0x0.0x1/",
    "hexadecimal as a whole": "http://0x7f000001/",
    "short": "http://127.1/",
    "shorter": "http://0/",
    "mixed": "http://0x7f.1/",
    "full-width digits": "http://１２７.０.０.１/",  # noqa: RUF001 - that is the trick
    "a cloud's metadata": "http://169.254.169.254/latest/meta-data/",
    "a cloud's metadata, decimal": "http://2852039166/",
    "private": "https://10.0.0.8/",
    "private, octal": "https://012.0.0.8/",
    "private, 192": "https://192.168.0.1/",
    "carrier-grade NAT": "https://100.64.1.1/",
    "IPv6 loopback": "http://[::1]/",
    "IPv6 loopback, long": "http://[0:0:0:0:0:0:0:1]/",
    "IPv4-mapped": "http://[::ffff:127.0.0.1]/",
    "IPv4-mapped, hexadecimal": "http://[::ffff:7f00:1]/",
    "NAT64": "http://[64:ff9b::7f00:1]/",
    "6to4": "http://[2002:7f00:1::]/",
    "unique local": "http://[fd12::1]/",
    "link-local": "http://[fe80::1]/",
    "multicast": "http://[ff02::1]/",
}
# Spellings that are not read at all.
_NO_SPELLING = {_REFUSED[name] for name in ("octal", "private, octal", "full-width digits")}
_NO_ENDPOINTS = {
    "no scheme": "hooks.example.com/bestarm",
    "another scheme": "ftp://hooks.example.com/",
    "a file": "file:///etc/passwd",
    "script": "javascript:alert(1)",
    "gopher": "gopher://hooks.example.com/",
    "no host": "https:///bestarm",
    "a user": "https://user@hooks.example.com/",
    "a user and a password": "https://user:pw@hooks.example.com/",
    "a user that looks like the host": "https://hooks.example.com@127.0.0.1/",
    "a fragment": "https://hooks.example.com/#x",
    "a port too large": "https://hooks.example.com:99999/",
    "port 0": "https://hooks.example.com:0/",
    "no port": "https://hooks.example.com:x/",
    "a line": "https://hooks.example.com/\r\nHost: evil",
    "nothing": "",
    "half an address": "https://[::1/",
}


@pytest.mark.parametrize("url", _REFUSED.values(), ids=_REFUSED)
def test_an_address_that_is_not_public_is_refused_however_it_is_spelled(url: str) -> None:
    """Decimal, octal, short, inside another form; where it means something, with the setting that would allow it."""
    with pytest.raises(InvalidValue) as refused:
        read_url(url, AllowedNetworks())
    assert refused.value.pointer == "/url"
    if url not in _NO_SPELLING:
        assert "is not a public address: BESTARM_WEBHOOK_ALLOWED_NETWORKS" in str(refused.value)


@pytest.mark.parametrize("url", _NO_ENDPOINTS.values(), ids=_NO_ENDPOINTS)
def test_what_is_no_endpoint_is_refused(url: str) -> None:
    """With a pointer to it."""
    with pytest.raises(InvalidValue) as refused:
        read_url(url, AllowedNetworks())
    assert refused.value.pointer == "/url"


@pytest.mark.parametrize(
    "url",
    [
        "https://hooks.example.com/services/T0/B0/x?y=z",
        "http://hooks.example.com:8080",
        "https://93.184.216.34/hooks",
        "https://[2606:4700::1111]/hooks",
        "https://bücher.example/hooks",
        "https://localhost/hooks",
    ],
)
def test_names_and_public_addresses_are_taken(url: str) -> None:
    """Nobody is asked yet what a name means: that is looked at when a message is sent."""
    assert read_url(url, AllowedNetworks()).host


def test_an_allowed_network_is_taken() -> None:
    """In any spelling that means it."""
    allowed = AllowedNetworks.named(["127.0.0.1"])
    assert str(read_url("http://2130706433:9000/", allowed)) == "http://2130706433:9000/"
    with pytest.raises(InvalidValue):
        read_url("http://127.0.0.2/", allowed)
