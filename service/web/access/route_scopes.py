"""What each route needs: every one stands here, and one that does not is refused to everybody."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from service.domain.callers import Scope

_EXPERIMENT = "/v1/experiments/{key}"
OPEN: Final[frozenset[tuple[str, str]]] = frozenset(
    {
        ("GET", "/healthz"),
        ("GET", "/readyz"),
        ("GET", "/dashboard/session"),
        ("POST", "/dashboard/session"),
        ("DELETE", "/dashboard/session"),
        ("GET", "/dashboard/session/oidc"),
        ("GET", "/dashboard/session/oidc/callback"),
    }
)
"""For everybody: probes, and the way in and out; they say nothing of any experiment."""
ROUTE_SCOPES: Final[Mapping[tuple[str, str], Scope]] = {
    ("GET", "/v1/experiments"): "read",
    ("GET", _EXPERIMENT): "read",
    ("GET", f"{_EXPERIMENT}/arms/{{arm}}"): "read",
    ("GET", f"{_EXPERIMENT}/assignments"): "read",
    ("GET", f"{_EXPERIMENT}/assignments/{{id}}"): "read",
    ("GET", f"{_EXPERIMENT}/observations"): "read",
    ("GET", f"{_EXPERIMENT}/observations/{{id:any_text}}"): "read",
    ("GET", f"{_EXPERIMENT}/recommendation"): "read",
    ("GET", f"{_EXPERIMENT}/forecast"): "read",
    ("GET", f"{_EXPERIMENT}/history"): "read",
    ("GET", f"{_EXPERIMENT}/events"): "read",
    ("GET", f"{_EXPERIMENT}/stream"): "read",
    ("GET", f"{_EXPERIMENT}/export"): "read",
    ("GET", f"{_EXPERIMENT}/charts/{{chart}}.svg"): "read",
    ("GET", "/dashboard/experiments"): "read",
    ("POST", "/dashboard/plan"): "read",
    ("GET", "/metrics"): "read",
    ("POST", f"{_EXPERIMENT}/assignments"): "assign",
    ("POST", f"{_EXPERIMENT}/assignments/batch"): "assign",
    ("POST", "/ofrep/v1/evaluate/flags/{key}"): "assign",
    ("POST", "/ofrep/v1/evaluate/flags"): "assign",
    ("GET", "/ofrep/v1/stream"): "assign",
    ("POST", f"{_EXPERIMENT}/units/{{unit}}/reward"): "reward",
    ("PUT", f"{_EXPERIMENT}/units/{{unit}}/reward"): "reward",
    ("DELETE", f"{_EXPERIMENT}/units/{{unit}}/reward"): "reward",
    ("POST", f"{_EXPERIMENT}/assignments/{{id}}/reward"): "reward",
    ("PUT", f"{_EXPERIMENT}/assignments/{{id}}/reward"): "reward",
    ("DELETE", f"{_EXPERIMENT}/assignments/{{id}}/reward"): "reward",
    ("POST", f"{_EXPERIMENT}/rewards"): "reward",
    ("POST", f"{_EXPERIMENT}/observations"): "reward",
    ("PUT", f"{_EXPERIMENT}/observations/{{id:any_text}}"): "reward",
    ("DELETE", f"{_EXPERIMENT}/observations/{{id:any_text}}"): "reward",
    ("POST", "/v1/experiments"): "manage",
    ("PATCH", _EXPERIMENT): "manage",
    ("POST", f"{_EXPERIMENT}/start"): "manage",
    ("POST", f"{_EXPERIMENT}/pause"): "manage",
    ("POST", f"{_EXPERIMENT}/resume"): "manage",
    ("POST", f"{_EXPERIMENT}/conclude"): "manage",
    ("POST", f"{_EXPERIMENT}/reopen"): "manage",
    ("POST", f"{_EXPERIMENT}/archive"): "manage",
    ("POST", f"{_EXPERIMENT}/duplicate"): "manage",
    ("POST", f"{_EXPERIMENT}/arms"): "manage",
    ("PATCH", f"{_EXPERIMENT}/arms/{{arm}}"): "manage",
    ("DELETE", _EXPERIMENT): "admin",
    ("GET", "/v1/log"): "admin",
    ("POST", "/v1/keys"): "admin",
    ("GET", "/v1/keys"): "admin",
    ("GET", "/v1/keys/{id}"): "admin",
    ("DELETE", "/v1/keys/{id}"): "admin",
    ("POST", "/v1/keys/{id}/rotate"): "admin",
    ("POST", "/v1/webhooks"): "admin",
    ("GET", "/v1/webhooks"): "admin",
    ("GET", "/v1/webhooks/{id}"): "admin",
    ("PATCH", "/v1/webhooks/{id}"): "admin",
    ("DELETE", "/v1/webhooks/{id}"): "admin",
    ("POST", "/v1/webhooks/{id}/rotate"): "admin",
    ("POST", "/v1/webhooks/{id}/test"): "admin",
    ("GET", "/v1/webhooks/{id}/deliveries"): "admin",
    ("POST", "/v1/webhooks/{id}/deliveries/{message}/resend"): "admin",
}
