"""The receiver of docs/webhooks.md, as it stands there, takes what the service sends, and nothing that it did not send."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from service.application.webhooks.messages import message_of_test
from service.application.webhooks.sender import Sender
from service.domain.network_addresses import AllowedNetworks
from service.domain.webhooks import Delivery, SigningSecret, Webhook, new_message_id, new_signing_secret
from testing.server import free_port
from tests.docs.texts import text_of


@pytest.mark.process
def test_the_receiver_of_the_page_verifies_and_takes_each_message_once(tmp_path: Path) -> None:
    """A message that comes twice is printed once; one that is signed by another secret is refused."""
    program = tmp_path / "receiver.py"
    (written,) = re.findall(r"^```python\n(.*?)^```", text_of("docs/webhooks.md"), re.MULTILINE | re.DOTALL)
    program.write_text(written)
    port, secret = free_port(), new_signing_secret()
    environment = os.environ | {"PORT": str(port), "WEBHOOK_SECRET": secret}
    running = subprocess.Popen(
        [sys.executable, program], env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )

    async def statuses() -> list[int | None]:
        sender = Sender(AllowedNetworks.named(["127.0.0.1"]))
        found: list[int | None] = []
        first, second = (_delivery() for _ in range(2))
        for signed_by, delivery in ((secret, first), (secret, first), (new_signing_secret(), second), (secret, second)):
            webhook = Webhook("wh_1", f"http://127.0.0.1:{port}/", (), None, "standard", (SigningSecret(signed_by),), 0, None)
            found.append((await sender.send_message(webhook, delivery)).response_status)
        await sender.close()
        return found

    try:
        _wait_for(port)
        assert asyncio.run(statuses()) == [204, 204, 401, 204]
    finally:
        running.terminate()
    printed, _ = running.communicate(timeout=30)
    assert printed.splitlines() == ["webhook.test This is a test: messages of bestarm arrive here."] * 2


def _delivery() -> Delivery:
    message = message_of_test("wh_1", 0)
    return Delivery(0, new_message_id(), "wh_1", "webhook.test", None, None, message, "waiting", 0)


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            asyncio.run(_connect(port))
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        else:
            return


async def _connect(port: int) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.close()
    await writer.wait_closed()
