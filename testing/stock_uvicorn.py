"""The same application under uvicorn as it comes, without the short way for asks and tells; started as `bestarm serve` is."""

from __future__ import annotations

import sys

import uvicorn


def main() -> None:
    """Serve on the port that is named."""
    port = int(sys.argv[sys.argv.index("--port") + 1])
    uvicorn.run(
        "service.main:create_server",
        factory=True,
        host="127.0.0.1",
        port=port,
        http="httptools",
        ws="none",
        server_header=False,
        access_log=False,
        proxy_headers=False,
        log_level="warning",
    )


if __name__ == "__main__":
    main()
