"""Keys of the API, as they come in and go out."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field

from service.domain.api_keys import ApiKeyKind
from service.domain.callers import SCOPES, Scope
from service.domain.limits import (
    API_KEY_EXPERIMENT_PATTERN,
    API_KEY_ID_PATTERN,
    LONGEST_GRACE_SECONDS,
    LONGEST_LABEL,
    MOST_KEY_EXPERIMENTS,
    MOST_KEY_ORIGINS,
    ORIGIN_PATTERN,
)
from service.web.api.answer_schemas import Answer
from service.web.api.request_schemas import Request

_ORIGIN = re.compile(ORIGIN_PATTERN)
KeyId = Annotated[str, Field(pattern=f"^{API_KEY_ID_PATTERN}$")]
Pattern = Annotated[str, Field(pattern=f"^{API_KEY_EXPERIMENT_PATTERN}$", examples=["checkout-*"])]


def _origin(given: str) -> str:
    origin = given.lower()
    if not _ORIGIN.fullmatch(origin):
        raise ValueError("An origin is written https://shop.example, without a path.")
    return origin


Origin = Annotated[str, Field(max_length=300, examples=["https://shop.example"]), AfterValidator(_origin)]


class KeyIn(Request):
    """A new key."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"label": "shop backend", "kind": "secret", "scopes": ["assign", "reward"], "experiments": ["checkout-*"]},
                {
                    "label": "shop pages",
                    "kind": "public",
                    "scopes": ["assign", "reward"],
                    "experiments": ["checkout-button"],
                    "origins": ["https://shop.example"],
                },
            ]
        }
    )

    label: Annotated[str, Field(min_length=1, max_length=LONGEST_LABEL)]
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=len(SCOPES))]
    experiments: Annotated[list[Pattern], Field(min_length=1, max_length=MOST_KEY_EXPERIMENTS)] | None = Field(
        None, description="Keys of experiments, or patterns with `*`; null means all."
    )
    expires_at: Annotated[datetime, Field(strict=False)] | None = None
    kind: ApiKeyKind = "secret"
    origins: Annotated[list[Origin], Field(min_length=1, max_length=MOST_KEY_ORIGINS)] | None = Field(
        None, description="Of a public key: the pages that may use it."
    )


class RotateIn(Request):
    """How long the old key is still good."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"grace_seconds": 3600}]})

    grace_seconds: Annotated[int, Field(ge=0, le=LONGEST_GRACE_SECONDS)] = 3600


class KeyOut(Answer):
    """A key, without its secret."""

    id: KeyId
    kind: ApiKeyKind
    label: str
    prefix: str = Field(description="How its secret begins.")
    scopes: list[Scope]
    experiments: list[str] | None
    origins: list[str] | None
    created_at: datetime
    created_by: str | None = Field(description="The key that made it; null where it was the operator.")
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None = Field(description="Written down at most once a minute.")
    successor: str | None = Field(description="The key that takes its place.")
    status: Literal["active", "expired", "revoked"]


class NewKeyOut(KeyOut):
    """A key, with its secret: this once."""

    secret: str | None = Field(description="Shown once; null when the same request is answered again.")


class KeyPage(Answer):
    """A page of keys, newest first."""

    keys: list[KeyOut]
    next_page_token: str | None
