"""Lists, page by page: how many bytes a page may have, and where the next one goes on."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from service.domain.limits import MOST_PAGE_BYTES
from service.web.api.views import encode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Item = TypeVar("Item")


def token_below(number: int) -> str:
    """An opaque token for the page below this number."""
    return base64.urlsafe_b64encode(b"below:%d" % number).decode()


@dataclass(frozen=True, slots=True)
class Listing(Generic[Item]):
    """A list by its name, how an item of it is shown, and the number that the next page goes on below."""

    name: str
    view: Callable[[Item], object]
    number_of: Callable[[Item], int]

    def page(self, found: Sequence[Item], size: int, go_on_below: int | None = None) -> bytes:
        """A page as JSON, of items of which one more than asked for tells that another page follows.

        It ends early where it would be too long, but not before its first item; `go_on_below` says that it ended early already.
        """
        written: list[bytes] = []
        left = MOST_PAGE_BYTES
        for item in found[:size]:
            text = encode(self.view(item))
            left -= len(text)
            if written and left < 0:
                break
            written.append(text)
        below = self.number_of(found[len(written) - 1]) if len(found) > len(written) else go_on_below
        token = encode(None if below is None else token_below(below))
        return b'{"%b":[%b],"next_page_token":%b}' % (self.name.encode(), b",".join(written), token)
