"""The pages and what they load. Every page is the same for everyone; what it shows comes from the API."""

from __future__ import annotations

import re
from pathlib import Path

from fastapi import APIRouter, FastAPI, Response
from starlette.responses import FileResponse
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from service.domain.limits import KEY_PATTERN
from service.errors import BestArmError
from service.web.api.parameters import ContextOf
from service.web.dashboard.vocabulary import VOCABULARY
from service.web.problems import STATUS

_HERE = Path(__file__).parent
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
_OF_SCRIPTS = {"Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff"}
_KEY = re.compile(KEY_PATTERN)
router = APIRouter(include_in_schema=False)


class _Static(StaticFiles):
    """Our own scripts and styles: asked for again with their ETag, so that a new release shows at once."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        answer = await super().get_response(path, scope)
        answer.headers.update(_OF_SCRIPTS)
        return answer


def _page(name: str, status: int = 200) -> Response:
    return FileResponse(_HERE / "pages" / f"{name}.html", status, HEADERS)


@router.get("/")
async def list_page() -> Response:
    """All experiments at a glance."""
    return _page("list")


@router.get("/new")
async def create_page() -> Response:
    """The form for a new experiment."""
    return _page("new")


@router.get("/experiments/{key}")
async def experiment_page(context: ContextOf, key: str) -> Response:
    """One experiment; the page itself says what is wrong when there is none."""
    if not context.callers.is_open and _KEY.fullmatch(key):
        return _page("experiment")  # whether it is there is for those to know who may see it
    try:
        await context.versions.current(key)
    except BestArmError as trouble:
        return _page("experiment", STATUS[type(trouble)][0])
    return _page("experiment")


@router.get("/keys")
async def keys_page() -> Response:
    """The keys of the API, for those who administer them."""
    return _page("keys")


@router.get("/docs")
async def docs_page() -> Response:
    """The API, from its OpenAPI document."""
    return _page("docs")


@router.get("/static/vocabulary.js")
async def vocabulary() -> Response:
    """What the scripts import of the domain's tables; before the mount, which has files alone."""
    return Response(VOCABULARY, media_type="text/javascript", headers=_OF_SCRIPTS)


def install(app: FastAPI) -> None:
    """Serve the pages and their files."""
    app.include_router(router)
    app.mount("/static", _Static(directory=_HERE / "static"), name="static")
