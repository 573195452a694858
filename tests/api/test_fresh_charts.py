"""A picture is as fresh as the recommendation, and a bad query is refused whatever the viewer knows."""

from __future__ import annotations

import httpx
import pytest

from testing.json_client import JsonClient, arms


@pytest.mark.parametrize("query", ["", "?theme=dark", "?version=0"])
def test_no_304_after_a_write(api: httpx.Client, wire: JsonClient, key: str, query: str) -> None:
    """Every reward that was answered before the picture was asked for makes it another one."""
    wire.create(key, arms=arms(2))
    where = f"/v1/experiments/{key}/charts/means.svg{query}"
    etag = api.get(where).headers["ETag"]
    for _ in range(60):
        assert api.get(where, headers={"If-None-Match": etag}).status_code == 304
        wire.tell(key, wire.ask(key)["id"], 1)
        picture = api.get(where, headers={"If-None-Match": etag})
        assert picture.status_code == 200
        etag = picture.headers["ETag"]
        version = wire.send("GET", f"/v1/experiments/{key}/recommendation").body["version"]
        assert etag.endswith(f'-{version}"')


@pytest.mark.parametrize("where", ["charts/means.svg?theme=bogus", "charts/means.svg?size=9", "recommendation?x=1"])
def test_a_bad_query_is_422_whatever_the_headers(api: httpx.Client, experiment: str, where: str) -> None:
    """Also for a viewer that has the newest state already."""
    path = f"/v1/experiments/{experiment}"
    etag = api.get(f"{path}/recommendation").headers["ETag"]
    for headers in ({}, {"If-None-Match": etag}, {"If-None-Match": "*"}):
        answer = api.get(f"{path}/{where}", headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (422, "validation_failed")
