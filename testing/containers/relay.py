"""relay.py HERE THERE PID: listen on a port of this machine, and connect to one of the network that a process is in.

A socket belongs to the network in which it was made. So this process listens, moves into the other network, and connects there.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import socket
import sys
from contextlib import suppress

_CLONE_NEWNET = 0x4000_0000


def _enter_network_of(pid: int) -> None:
    """As os.setns of Python 3.12."""
    network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    if ctypes.CDLL(None, use_errno=True).setns(network, _CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")
    os.close(network)


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while piece := await reader.read(65_536):
            writer.write(piece)
            await writer.drain()
    with suppress(OSError):
        writer.close()


async def _relay(listening: socket.socket, port: int) -> None:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there_reader, there_writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(_pass_on(reader, there_writer), _pass_on(there_reader, writer))

    server = await asyncio.start_server(connected, sock=listening)
    await server.serve_forever()


def main() -> None:
    """Until somebody ends it."""
    here, there, pid = map(int, sys.argv[1:])
    listening = socket.create_server(("127.0.0.1", here))
    _enter_network_of(pid)
    asyncio.run(_relay(listening, there))


if __name__ == "__main__":
    main()
