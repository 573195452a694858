"""One attempt: a POST to an endpoint, at an address that was looked at, within a bounded time, reading a bounded answer.

The name is resolved once. The connection goes to the address that was checked, so that a name that means something else a moment
later (DNS rebinding) gains nothing; TLS is still with the name. Redirects are not followed: they would lead past the check.
Connections are not kept, because by address one of another name could be taken for this one's.
"""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from typing import TYPE_CHECKING

import httpx

from service import __version__
from service.application.webhooks.endpoint_url import AddressRefused, Resolver, SystemResolver, callable_addresses, read_url
from service.application.webhooks.messages import body_in
from service.application.webhooks.signatures import signed_headers
from service.application.webhooks.webhook_metrics import count_attempt
from service.domain.limits import MOST_ANSWER_BYTES, WEBHOOK_TIMEOUT_SECONDS
from service.domain.network_addresses import AllowedNetworks
from service.engine.clock import now_microseconds
from service.errors import InvalidValue
from service.storage.queries.delivery_queues import AttemptResult

if TYPE_CHECKING:
    from collections.abc import Mapping

    from service.domain.webhooks import Delivery, Webhook

_AGENT = f"bestarm/{__version__}"
# Of the addresses of a name so many are tried, if nobody answers at the first.
_MOST_ADDRESSES = 3
_LONGEST_REASON = 200
# How long the rest of an answer is waited for.
_REST_SECONDS = 1.0


class Sender:
    """One per worker. `resolve` and `ssl_context` are the system's unless somebody else stands in."""

    def __init__(
        self,
        networks: AllowedNetworks | None = None,
        timeout_seconds: float = WEBHOOK_TIMEOUT_SECONDS,
        *,
        resolve: Resolver | None = None,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self.networks = networks or AllowedNetworks()
        self.timeout_seconds = timeout_seconds
        self._own_resolver = SystemResolver()
        self._resolve = resolve or self._own_resolver
        self._ssl_context = ssl_context
        self._client: httpx.AsyncClient | None = None

    async def send_message(self, webhook: Webhook, delivery: Delivery) -> AttemptResult:
        """A message in the form that its endpoint takes, signed and counted."""
        now, body = now_microseconds(), body_in(webhook.template, delivery.message)
        headers = signed_headers(webhook.secrets_at(now), delivery.id, now // 1_000_000, body)
        result = await self.send(webhook.url, headers, body)
        count_attempt(delivered=result.delivered)
        return result

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> AttemptResult:
        """What became of it; never an exception."""
        try:
            async with asyncio.timeout(self.timeout_seconds) as whole:
                return await self._send(read_url(url, self.networks), headers, body, whole)
        except TimeoutError:
            return AttemptResult(False, error=f"There was no answer within {self.timeout_seconds:g} seconds.")
        except (InvalidValue, AddressRefused) as refused:
            return AttemptResult(False, error=str(refused))
        except (httpx.HTTPError, httpx.InvalidURL) as failure:
            return AttemptResult(False, error=_reason(failure))

    async def close(self) -> None:
        """Send nothing more."""
        self._own_resolver.close()
        if self._client is not None:
            await self._client.aclose()

    async def _send(self, url: httpx.URL, headers: Mapping[str, str], body: bytes, whole: asyncio.Timeout) -> AttemptResult:
        addresses = (await callable_addresses(url, self.networks, self._resolve))[:_MOST_ADDRESSES]
        for address in addresses[:-1]:
            try:
                return await self._post(url, address, headers, body, whole)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                continue  # nobody has heard of it yet
        return await self._post(url, addresses[-1], headers, body, whole)

    async def _post(
        self, url: httpx.URL, address: str, headers: Mapping[str, str], body: bytes, whole: asyncio.Timeout
    ) -> AttemptResult:
        own = {"Host": url.netloc.decode(), "Content-Type": "application/json", "User-Agent": _AGENT, "Connection": "close"}
        pinned = url.copy_with(host=address)
        named = {"sni_hostname": url.raw_host.decode()} if url.scheme == "https" else {}
        async with self._opened().stream("POST", pinned, headers=own | dict(headers), content=body, extensions=named) as answer:
            status = answer.status_code
            # All that counts is known: that the rest takes long cannot make a failure of it any more.
            whole.reschedule(asyncio.get_running_loop().time() + 2 * _REST_SECONDS)
            await _read_some(answer)
        if answer.is_success:
            return AttemptResult(True, status)
        is_redirect = " A redirect is not followed." if answer.is_redirect else ""
        return AttemptResult(False, status, f"The endpoint answered {status}.{is_redirect}")

    def _opened(self) -> httpx.AsyncClient:
        """The client, made when it is first needed: to read the certificates of the world takes a while."""
        if self._client is None:
            self._client = httpx.AsyncClient(
                verify=self._ssl_context or True,
                # The whole attempt has its time; half of it is enough for a connection, where another address may be tried.
                timeout=httpx.Timeout(None, connect=self.timeout_seconds / 2),
                limits=httpx.Limits(max_keepalive_connections=0),
                trust_env=False,  # no proxy of the environment's: it would connect for us, wherever to
                follow_redirects=False,
            )
        return self._client


async def _read_some(answer: httpx.Response) -> None:
    """Let the endpoint end its sentence, if it is short: its status has said all that counts, whatever follows."""
    read = 0
    with suppress(httpx.HTTPError, TimeoutError):
        async with asyncio.timeout(_REST_SECONDS):
            async for piece in answer.aiter_raw():
                read += len(piece)
                if read > MOST_ANSWER_BYTES:
                    return


def _reason(failure: Exception) -> str:
    """In a sentence. What the library says of addresses and certificates is short, and has no path in it."""
    if isinstance(failure, httpx.TimeoutException):
        return "The endpoint did not answer in time."
    if isinstance(failure, httpx.ConnectError):
        return f"There is no connection to the endpoint: {str(failure)[:_LONGEST_REASON] or 'it was refused'}."
    return "The connection ended before the answer was whole, or what came was not HTTP."
