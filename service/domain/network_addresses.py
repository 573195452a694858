"""Which addresses of the network a message may be sent to: public ones, and those that the operator allows.

Whoever makes a webhook chooses where the service connects to, from inside the operator's network: to a database without a
password, a cloud's metadata, the service itself. So every address that is not plainly somebody else's on the public internet is
refused, forms that carry another address inside them included.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

# Everything in IANA's registry of special IPv4 addresses that is not plain public unicast.
_SPECIAL_4 = tuple(
    IPv4Network(one)
    for one in (
        "0.0.0.0/8",  # this network, the unspecified address included
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # carrier-grade NAT
        "127.0.0.0/8",  # loopback
        "169.254.0.0/16",  # link-local: where clouds have their metadata
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.31.196.0/24",  # AS112
        "192.52.193.0/24",  # AMT relays
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "192.175.48.0/24",  # AS112
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast included
    )
)
# Of IPv6 only this is public unicast: not loopback, link-local, unique local, multicast, IPv4-mapped, IPv4-compatible or NAT64.
_GLOBAL_6 = IPv6Network("2000::/3")
_SPECIAL_6 = tuple(
    IPv6Network(one)
    for one in (
        "2001::/23",  # protocol assignments: Teredo, ORCHID, benchmarks
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4, with an IPv4 address inside
        "2620:4f:8000::/48",  # AS112
        "3fff::/20",  # documentation
    )
)


def is_public(address: Address) -> bool:
    """Is it somebody's on the public internet?"""
    if isinstance(address, IPv4Address):
        return not any(address in special for special in _SPECIAL_4)
    return address in _GLOBAL_6 and not any(address in special for special in _SPECIAL_6)


@dataclass(frozen=True, slots=True)
class AllowedNetworks:
    """What may be called besides public addresses."""

    networks: tuple[Network, ...] = ()

    @classmethod
    def named(cls, names: list[str]) -> AllowedNetworks:
        """As the operator writes them: 10.1.0.0/16, or a single address."""
        return cls(tuple(ip_network(name) for name in names))

    def allow(self, address: str) -> bool:
        """May this address be called? What is none may not."""
        try:
            known = ip_address(address)
        except ValueError:
            return False
        return is_public(known) or any(known in network for network in self.networks)
