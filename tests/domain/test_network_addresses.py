"""Which addresses a message may be sent to."""

from __future__ import annotations

import pytest

from service.domain.network_addresses import AllowedNetworks

REFUSED = {
    "unspecified": "0.0.0.0",  # noqa: S104 - nobody listens there
    "this network": "0.1.2.3",
    "private 10": "10.0.0.1",
    "private 172": "172.16.0.1",
    "private 172, the end": "172.31.255.255",
    "private 192": "192.168.1.1",
    "carrier-grade NAT": "100.64.0.1",
    "loopback": "127.0.0.1",
    "loopback, another": "127.8.9.10",
    "link-local, a cloud's metadata": "169.254.169.254",
    "protocol assignments": "192.0.0.170",
    "documentation": "192.0.2.1",
    "6to4 relay": "192.88.99.1",
    "benchmarks": "198.18.0.1",
    "multicast": "224.0.0.1",
    "reserved": "240.0.0.1",
    "broadcast": "255.255.255.255",
    "IPv6 unspecified": "::",
    "IPv6 loopback": "::1",
    "IPv4-compatible": "::7f00:1",
    "IPv4-mapped": "::ffff:127.0.0.1",
    "IPv4-mapped, a public one": "::ffff:8.8.8.8",
    "NAT64": "64:ff9b::7f00:1",
    "NAT64 of a network's own": "64:ff9b:1::1",
    "discard": "100::1",
    "Teredo": "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "ORCHID": "2001:20::1",
    "IPv6 documentation": "2001:db8::1",
    "6to4 of loopback": "2002:7f00:1::",
    "6to4 of a public one": "2002:808:808::",
    "IPv6 documentation, the new one": "3fff::1",
    "unique local": "fd00::1",
    "link-local": "fe80::1",
    "link-local with its link": "fe80::1%1",
    "site-local": "fec0::1",
    "IPv6 multicast": "ff02::1",
    "no address": "localhost",
    "nothing": "",
}


@pytest.mark.parametrize("address", REFUSED.values(), ids=REFUSED)
def test_what_is_not_public_is_refused(address: str) -> None:
    """Whatever form it has."""
    assert not AllowedNetworks().allow(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "93.184.216.34", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450::1"])
def test_what_is_public_is_not(address: str) -> None:
    """Plain unicast addresses of somebody else."""
    assert AllowedNetworks().allow(address)


def test_an_operator_allows_networks_and_nothing_else() -> None:
    """Networks and single addresses, of both families; an address inside another form is not inside the network."""
    allowed = AllowedNetworks.named(["10.1.0.0/16", "fd00::/8", "127.0.0.2"])
    assert [allowed.allow(one) for one in ("10.1.2.3", "fd00::1", "127.0.0.2", "8.8.8.8")] == [True] * 4
    refused = ("10.2.0.1", "127.0.0.1", "::ffff:10.1.2.3", "2002:a01:203::", "fe80::1")
    assert [allowed.allow(one) for one in refused] == [False] * 5


def test_a_network_that_is_none_is_named() -> None:
    """So that a typing error does not open another one."""
    with pytest.raises(ValueError, match="10\\.1\\.0\\.1/16 has host bits set"):
        AllowedNetworks.named(["10.1.0.1/16"])
