"""The links of the OpenAPI document: which operations go on from an answer, and where it says what they need.

Generated clients and tests that play whole conversations follow them.
"""

from __future__ import annotations

from typing import Any

_EXPERIMENT = {"key": "$response.body#/key"}
_SAME_EXPERIMENT = {"key": "$request.path.key"}
_DRAWN = {**_SAME_EXPERIMENT, "id": "$response.body#/id"}
_NEW_ARM = {**_SAME_EXPERIMENT, "arm": "$response.body#/key"}
_WITH_ID = {"id": "$response.body#/id"}
_OF_A_NEW_EXPERIMENT = (
    "get_experiment", "patch_experiment", "start_experiment", "pause_experiment", "add_arm", "ask", "ask_batch", "observe",
    "get_recommendation", "get_forecast", "get_history", "list_assignments", "list_events",
)  # fmt: skip
# By operation and status: the operations that go on from there, and their parameters.
_LINKS: dict[tuple[str, str], dict[str, dict[str, str]]] = {
    ("create_experiment", "201"): dict.fromkeys(_OF_A_NEW_EXPERIMENT, _EXPERIMENT),
    ("duplicate_experiment", "201"): dict.fromkeys(("get_experiment", "start_experiment"), _EXPERIMENT),
    ("pause_experiment", "200"): dict.fromkeys(("resume_experiment", "conclude_experiment"), _EXPERIMENT),
    ("conclude_experiment", "200"): dict.fromkeys(("ask", "reopen_experiment", "archive_experiment"), _EXPERIMENT),
    ("archive_experiment", "200"): {"delete_experiment": _EXPERIMENT | {"confirm": "$response.body#/key"}},
    ("add_arm", "201"): dict.fromkeys(("get_arm", "patch_arm"), _NEW_ARM),
    ("ask", "201"): dict.fromkeys(("get_assignment", "tell", "correct_reward", "void_reward"), _DRAWN),
    ("tell", "200"): dict.fromkeys(("get_assignment", "correct_reward", "void_reward"), _DRAWN),
    ("create_webhook", "201"): dict.fromkeys(
        ("get_webhook", "patch_webhook", "delete_webhook", "rotate_secret", "test_webhook", "list_deliveries"), _WITH_ID
    ),
    ("create_key", "201"): dict.fromkeys(("get_key", "rotate_key", "revoke_key"), _WITH_ID),
}


def link(document: dict[str, Any]) -> None:
    """Put them into the document."""
    for operations in document["paths"].values():
        for operation in operations.values():
            for status, answer in operation["responses"].items():
                links = _LINKS.get((operation["operationId"], status))
                if links is not None:
                    answer["links"] = {
                        name: {"operationId": name, "parameters": parameters} for name, parameters in links.items()
                    }
