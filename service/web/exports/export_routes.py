"""Export: an experiment's data as a file."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from service.application.reads import experiment_descriptions
from service.application.reads.export import Exported, ExportOrder
from service.domain.file_formats import FileFormat, require_format
from service.domain.limits import LARGEST_SEQUENCE, LONGEST_NAME
from service.web.api.body import StrictRoute
from service.web.api.parameters import AccessOf, ContextOf, Window
from service.web.exports.export_file import MEDIA_TYPES, FileOrder
from service.web.exports.export_response import ExportResponse
from service.web.middleware.head_requests import ASKED_BY_HEAD
from service.web.problems import documented

router = APIRouter(prefix="/v1/experiments/{key}", tags=["data"], route_class=StrictRoute)
_FILE = {"schema": {"type": "string", "format": "binary"}}


@router.get(
    "/export",
    response_class=Response,
    responses=documented(404, 422, 429, 501, 503)
    | {
        200: {
            "description": "The file, in chunks; one without its last chunk is not whole.",
            "content": {media_type.partition(";")[0]: _FILE for media_type in MEDIA_TYPES.values()},
            "headers": {
                "Bestarm-Version": {
                    "description": "The version of the experiment in the snapshot.",
                    "schema": {"type": "integer"},
                }
            },
        }
    },
)
async def export_data(
    request: Request,
    context: ContextOf,
    access: AccessOf,
    window: Window,
    *,
    of: Annotated[Exported, Query(description="What is exported.")] = "assignments",
    format: Annotated[FileFormat, Query(description="How it is written; `parquet` needs an extra.")] = "csv",  # noqa: A002 - the contract's name
    after: Annotated[int, Query(ge=0, le=LARGEST_SEQUENCE, description="Only rows with a higher `sequence`: to go on.")] = 0,
    arm: Annotated[str | None, Query(max_length=LONGEST_NAME, description="Only this arm.")] = None,
) -> Response:
    """An experiment's data as a file, streamed from one snapshot in ascending order of `sequence`. Units are personal data."""
    require_format(format)
    # Refused here, what cannot be found costs no process.
    if arm is None:
        await experiment_descriptions.size_of(context, access.key)
    else:
        await experiment_descriptions.describe_arm(context, access.key, arm)
    wanted = FileOrder(ExportOrder(access.key, of, after, window.since, window.until, arm), format)
    answer = ExportResponse(context, access.caller, wanted)
    return answer.only_head() if ASKED_BY_HEAD in request.scope else answer
