"""Webhooks over HTTP: made, shown without their secret, changed, tested, rotated, disabled, sent to again, deleted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from service.domain.limits import MOST_WEBHOOKS
from service.domain.webhooks import WEBHOOK_EVENTS
from service.web.api.webhook_schemas import DeliveryPage, NewWebhookOut, WebhookPage
from testing.databases import NewDatabase
from testing.json_client import JsonClient, Reply, arms
from testing.receiver import QUIET_WEBHOOK, Receiver
from testing.server import ADMIN_KEY, Server

_NOT_KNOWN = "wh_" + "0" * 20


@pytest.fixture(scope="module")
def hooked(new_database: NewDatabase, engine: str) -> Iterator[Server]:
    """A service that may call loopback addresses, and is impatient."""
    with Server(
        new_database(),
        measured=engine == "postgresql",
        key=ADMIN_KEY,
        BESTARM_SWEEP_SECONDS="0.05",
        BESTARM_WEBHOOK_ALLOWED_NETWORKS="127.0.0.0/8, 10.9.8.0/24",
        BESTARM_WEBHOOK_RETRY_SECONDS="0.05",
        BESTARM_WEBHOOK_SETTLE_SECONDS="0.1",
    ) as running:
        yield running
        assert "Traceback" not in running.log.read_text()


@pytest.fixture
def admin(hooked: Server) -> Iterator[JsonClient]:
    """Its administrator; no webhook is left behind."""
    with JsonClient(hooked.url, key=hooked.key) as client:
        yield client
        for one in client.send("GET", "/v1/webhooks?page_size=1000").body["webhooks"]:
            assert client.send("DELETE", f"/v1/webhooks/{one['id']}").status == 204


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """An endpoint."""
    with Receiver() as running:
        yield running


def _create(admin: JsonClient, url: str, **wanted: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    made = admin.send("POST", "/v1/webhooks", {"url": url} | wanted)
    assert made.status == 201, made
    body: dict[str, Any] = made.body
    return body


def _deliveries(admin: JsonClient, webhook: dict[str, Any], query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = admin.send("GET", f"/v1/webhooks/{webhook['id']}/deliveries{query}").body["deliveries"]
    return found


def test_a_webhook_s_life(admin: JsonClient, receiver: Receiver) -> None:
    """Created with its secret, shown without it, changed, deleted; the log of the instance tells, without the path."""
    made = _create(admin, f"{receiver.url}/secret-path", experiments=["of-nobody-*"])
    NewWebhookOut.model_validate_json(json.dumps(made))
    assert made["secret"].startswith("whsec_")
    assert (made["events"], made["template"], made["status"]) == (list(WEBHOOK_EVENTS), "standard", "enabled")
    path = f"/v1/webhooks/{made['id']}"
    shown = admin.send("GET", path).body
    assert shown == {name: value for name, value in made.items() if name != "secret"}
    page = admin.send("GET", "/v1/webhooks").body
    assert page["webhooks"] == [shown]
    WebhookPage.model_validate_json(json.dumps(page))
    changes = {"events": ["arm.changed"], "experiments": None, "template": "slack", "status": "disabled"}
    changed = admin.send("PATCH", path, changes)
    assert (changed.status, changed.body) == (200, shown | changes)
    assert admin.send("PATCH", path, {}).body == changed.body
    assert [admin.send("DELETE", path).status for _ in range(2)] == [204, 404]
    entries = admin.send("GET", "/v1/log").body["entries"][:3]
    assert [(one["kind"], one["actor"]["id"]) for one in entries] == [
        ("webhook_deleted", "admin"),
        ("webhook_changed", "admin"),
        ("webhook_created", "admin"),
    ]
    assert entries[1]["details"] == {
        "webhook": made["id"],
        "host": "127.0.0.1",
        "changed": "events, experiments, status, template",
    }
    assert "secret-path" not in json.dumps(entries)


def test_a_repeated_creation_keeps_the_secret_to_itself(admin: JsonClient) -> None:
    """One webhook, and the second answer is the first without its secret."""
    first, again = (admin.send("POST", "/v1/webhooks", QUIET_WEBHOOK, idempotency_key="hooks-twice") for _ in range(2))
    assert (first.status, again.status, again.headers["idempotency-replayed"]) == (201, 201, "true")
    assert again.body == first.body | {"secret": None}
    assert len(admin.send("GET", "/v1/webhooks").body["webhooks"]) == 1
    other = admin.send("POST", "/v1/webhooks", QUIET_WEBHOOK | {"template": "slack"}, idempotency_key="hooks-twice")
    assert (other.status, other.body["code"]) == (422, "idempotency_key_reused")


@pytest.mark.parametrize(
    ("wanted", "pointer"),
    [
        ({"url": "http://10.0.0.1/"}, "/url"),
        ({"url": "http://[::1]/"}, "/url"),
        ({"url": "http://user:pw@hooks.example.com/"}, "/url"),
        ({"url": "ftp://hooks.example.com/"}, "/url"),
        ({"url": "https://hooks.example.com/" + "x" * 2_048}, "/url"),
        ({"url": None}, "/url"),
        ({"events": []}, "/events"),
        ({"events": ["experiment.created"]}, "/events/0"),
        ({"events": ["arm.changed", "arm.changed"]}, "/events"),
        ({"experiments": []}, "/experiments"),
        ({"experiments": ["No"]}, "/experiments/0"),
        ({"template": "irc"}, "/template"),
        ({"secret": "whsec_of-mine"}, "/secret"),
        ({"status": "enabled"}, "/status"),
    ],
)
def test_what_makes_no_webhook_is_refused(admin: JsonClient, wanted: dict[str, Any], pointer: str) -> None:
    """With a pointer to it, when it is made and when it is changed."""
    refused = admin.send("POST", "/v1/webhooks", {"url": "https://hooks.example.com/"} | wanted)
    assert (refused.status, refused.body["errors"][0]["pointer"]) == (422, pointer)
    if pointer != "/status":
        made = _create(admin, **QUIET_WEBHOOK)
        changed = admin.send("PATCH", f"/v1/webhooks/{made['id']}", wanted)
        assert changed.status == 422, changed
        assert admin.send("GET", f"/v1/webhooks/{made['id']}").body["url"] == QUIET_WEBHOOK["url"]


def test_an_allowed_network_is_taken(admin: JsonClient) -> None:
    """What BESTARM_WEBHOOK_ALLOWED_NETWORKS names, and its neighbours are not."""
    assert _create(admin, "http://10.9.8.7/", experiments=["of-nobody"])["url"] == "http://10.9.8.7/"
    assert admin.send("POST", "/v1/webhooks", {"url": "http://10.9.9.1/"}).status == 422


@pytest.mark.parametrize("name", [_NOT_KNOWN, "nothing", "wh_%00"])
def test_an_unknown_webhook_or_message(admin: JsonClient, name: str) -> None:
    """404, in its own words."""
    for method, path, body in (
        ("GET", "", None),
        ("PATCH", "", {"template": "slack"}),
        ("DELETE", "", None),
        ("POST", "/rotate", {}),
        ("POST", "/test", None),
        ("GET", "/deliveries", None),
        ("POST", f"/deliveries/msg_{'0' * 20}/resend", None),
    ):
        reply = admin.send(method, f"/v1/webhooks/{name}{path}", body)
        assert (reply.status, reply.body["code"]) == (404, "webhook_not_found"), path
    made = _create(admin, **QUIET_WEBHOOK)
    for message in (f"msg_{'0' * 20}", "nothing", "msg_%00"):
        reply = admin.send("POST", f"/v1/webhooks/{made['id']}/deliveries/{message}/resend")
        assert (reply.status, reply.body["code"]) == (404, "delivery_not_found")


def test_a_test_says_what_became_of_it(admin: JsonClient, receiver: Receiver) -> None:
    """Delivered, refused, failed; to a disabled webhook, too; it is listed, and not sent again."""
    made = _create(admin, receiver.url, experiments=["of-nobody"])
    path = f"/v1/webhooks/{made['id']}"
    sent = admin.send("POST", f"{path}/test").body
    assert (sent["status"], sent["response_status"], sent["event"], sent["attempts"]) == ("delivered", 200, "webhook.test", 1)
    assert receiver.requests[0].is_signed_by(made["secret"])
    assert receiver.requests[0].id == sent["id"]
    receiver.faults.extend(["error", "redirect"])
    admin.send("PATCH", path, {"status": "disabled"})
    failed = [admin.send("POST", f"{path}/test").body for _ in range(2)]
    assert [(one["status"], one["response_status"]) for one in failed] == [("failed", 500), ("failed", 301)]
    assert [one["id"] for one in _deliveries(admin, made)] == [failed[1]["id"], failed[0]["id"], sent["id"]]
    refused = admin.send("POST", f"{path}/deliveries/{sent['id']}/resend")
    assert (refused.status, refused.body["code"]) == (409, "conflict")
    assert len(receiver.requests) == 3


def test_messages_are_listed_page_by_page_and_sent_again(admin: JsonClient, receiver: Receiver, key: str) -> None:
    """Newest first, by what became of them; one that was delivered is sent again under its id."""
    made = _create(admin, receiver.url, experiments=[key])
    admin.create(key, arms=arms(2))
    receiver.faults.extend(["error"])
    for _ in range(2):
        admin.send("POST", f"/v1/experiments/{key}/pause")
        admin.send("POST", f"/v1/experiments/{key}/resume")
    receiver.wait_for(lambda: len(_deliveries(admin, made, "?status=delivered")) == 2)
    newest, oldest = _deliveries(admin, made)
    assert (oldest["attempts"], newest["attempts"]) == (2, 1)
    assert (oldest["experiment"], oldest["sequence"], newest["sequence"]) == (key, 2, 4)
    assert oldest["message"] == receiver.requests[1].message
    assert (oldest["next_attempt_at"], oldest["error"], oldest["response_status"]) == (None, None, 200)
    first = admin.send("GET", f"/v1/webhooks/{made['id']}/deliveries?page_size=1").body
    DeliveryPage.model_validate_json(json.dumps(first))
    rest = _deliveries(admin, made, f"?page_size=1&page_token={first['next_page_token']}")
    assert (first["deliveries"], rest) == ([newest], [oldest])
    assert _deliveries(admin, made, "?status=waiting") == []
    again = admin.send("POST", f"/v1/webhooks/{made['id']}/deliveries/{oldest['id']}/resend")
    assert (again.status, again.body["status"]) == (200, "waiting")
    receiver.wait_for(lambda: len(receiver.requests) == 4)
    assert receiver.requests[3].id == oldest["id"]
    assert admin.send("GET", f"/v1/webhooks/{made['id']}/deliveries?status=lost").status == 422


def test_a_webhook_shows_what_waits_and_why_it_was_disabled(admin: JsonClient, receiver: Receiver, key: str) -> None:
    """A 410 disables it, the notice and the log say so, and enabled again it gets what has waited."""
    made = _create(admin, receiver.url, experiments=[key], events=["experiment.paused"])
    path = f"/v1/webhooks/{made['id']}"
    admin.create(key, arms=arms(2))
    receiver.faults.extend(["gone"])
    admin.send("POST", f"/v1/experiments/{key}/pause")
    receiver.wait_for(lambda: admin.send("GET", path).body["status"] == "disabled")
    shown = admin.send("GET", path).body
    assert (shown["notice"], shown["waiting"]) == ("The endpoint answered 410 Gone.", 1)
    assert shown["oldest_waiting_at"] == _deliveries(admin, made)[0]["created_at"]
    entry = admin.send("GET", "/v1/log").body["entries"][0]
    assert (entry["kind"], entry["actor"], entry["details"]["notice"]) == ("webhook_disabled", None, shown["notice"])
    assert admin.send("PATCH", path, {"status": "enabled"}).body["notice"] is None
    receiver.wait_for(lambda: len(receiver.messages()) == 1)
    receiver.wait_for(lambda: admin.send("GET", path).body["waiting"] == 0)


def test_a_rotated_secret_signs_beside_the_old_one(admin: JsonClient, receiver: Receiver) -> None:
    """For the grace period; the answer has the new one, once."""
    made = _create(admin, receiver.url, experiments=["of-nobody"])
    path = f"/v1/webhooks/{made['id']}"
    rotated = admin.send("POST", f"{path}/rotate", {"grace_seconds": 600}, idempotency_key=made["id"])
    assert rotated.status == 201
    assert rotated.body["secret"] not in (None, made["secret"])
    again = admin.send("POST", f"{path}/rotate", {"grace_seconds": 600}, idempotency_key=made["id"])
    assert again.body == rotated.body | {"secret": None}
    assert admin.send("GET", path).body["former_secret_until"] is not None
    admin.send("POST", f"{path}/test")
    assert all(receiver.requests[0].is_signed_by(secret) for secret in (made["secret"], rotated.body["secret"]))
    at_once = admin.send("POST", f"{path}/rotate", {"grace_seconds": 0}).body
    assert at_once["former_secret_until"] is None
    admin.send("POST", f"{path}/test")
    assert receiver.requests[1].is_signed_by(at_once["secret"])
    for former in (made["secret"], rotated.body["secret"]):
        with pytest.raises(Exception, match="No matching signature"):
            receiver.requests[1].is_signed_by(former)


def test_there_are_so_many_and_no_more(admin: JsonClient) -> None:
    """One more is refused, and one fewer makes room."""
    made = [_create(admin, **QUIET_WEBHOOK) for _ in range(MOST_WEBHOOKS)]
    refused = admin.send("POST", "/v1/webhooks", QUIET_WEBHOOK)
    assert (refused.status, refused.body["code"]) == (409, "conflict")
    assert admin.send("DELETE", f"/v1/webhooks/{made[0]['id']}").status == 204
    assert admin.send("POST", "/v1/webhooks", QUIET_WEBHOOK).status == 201


def _rewarded(admin: JsonClient, key: str, shares: dict[str, float], draws: int) -> None:
    """Ask so often, and reward each arm by its share, evenly spread."""
    asked = admin.send("POST", f"/v1/experiments/{key}/assignments/batch", {"count": draws}).body["assignments"]
    sums = dict.fromkeys(shares, 0.0)
    rewards = []
    for one in asked:
        sums[one["arm"]] += shares[one["arm"]]
        rewards.append({"assignment": one["id"], "reward": int(sums[one["arm"]] >= 1)})
        sums[one["arm"]] %= 1
    told: Reply = admin.send("POST", f"/v1/experiments/{key}/rewards", {"rewards": rewards})
    assert told.status == 200


def test_a_leader_a_verdict_and_a_conclusion_are_told(admin: JsonClient, receiver: Receiver, key: str) -> None:
    """Of three arms: who leads, who leads instead, that one is better than both others, once, and that it concluded by itself."""
    made = _create(admin, receiver.url, experiments=[key])
    rule = {"separated": True, "min_observations": 700}
    admin.create(key, arms=arms(3), policy={"kind": "uniform"}, conclude_when=rule, name="Three & more")
    _rewarded(admin, key, {"arm-0": 0.5, "arm-1": 0.4, "arm-2": 0.4}, 90)
    receiver.wait_for(lambda: len(receiver.messages()) == 1)
    _rewarded(admin, key, {"arm-0": 0.5, "arm-1": 0.9, "arm-2": 0.2}, 600)
    receiver.wait_for(lambda: {"recommendation.changed", "experiment.separated"} <= {one.type for one in receiver.taken[1:]})
    _rewarded(admin, key, {"arm-0": 0.5, "arm-1": 0.9, "arm-2": 0.2}, 90)
    receiver.wait_for(lambda: len(receiver.messages()) == 4)
    told = {one["type"]: one["data"] for one in receiver.messages()}
    assert [one.type for one in receiver.taken].count("experiment.separated") == 1
    assert (told["recommendation.changed"]["arm"], told["recommendation.changed"]["previous_arm"]) == ("arm-1", "arm-0")
    assert receiver.messages()[0]["data"]["previous_arm"] is None
    assert (told["experiment.separated"]["arm"], told["experiment.separated"]["name"]) == ("arm-1", "Three & more")
    concluded = told["experiment.concluded"]
    assert (concluded["arm"], concluded["by"], concluded["actor"]) == ("arm-1", "conclude_when", None)
    assert concluded["recommendation"]["summary"].startswith("The experiment is concluded and serves arm-1")
    assert [one["data"]["version"] for one in receiver.messages()] == sorted(
        one["data"]["version"] for one in receiver.messages()
    )
    assert all(one.is_signed_by(made["secret"]) for one in receiver.requests)
    events = admin.send("GET", f"/v1/experiments/{key}/events?kind=separated").body["events"]
    assert sorted(one["arm"] for one in events) == ["arm-0", "arm-2"]
    assert [one["details"].get("best") for one in events] == ["arm-1", None], "the last of the pairs has completed it"
    leaders = admin.send("GET", f"/v1/experiments/{key}/events?kind=leader_changed").body["events"]
    assert [(one["arm"], one["details"]["previous"]) for one in leaders] == [("arm-1", "arm-0"), ("arm-0", None)]


def test_the_leader_of_an_older_experiment_is_noted_and_not_told(admin: JsonClient, receiver: Receiver, key: str) -> None:
    """What was so before is no news; what changes from then on is."""
    admin.create(key, arms=arms(2), policy={"kind": "uniform"})
    _rewarded(admin, key, {"arm-0": 0.6, "arm-1": 0.4}, 40)
    made = _create(admin, receiver.url, experiments=[key], events=["recommendation.changed"])
    noted = f"/v1/experiments/{key}/events?kind=leader_changed"
    receiver.wait_for(lambda: len(admin.send("GET", noted).body["events"]) == 1)
    (first,) = admin.send("GET", noted).body["events"]
    assert (first["arm"], first["details"]) == ("arm-0", {"previous": None, "first": True})
    _rewarded(admin, key, {"arm-0": 0.2, "arm-1": 0.9}, 100)
    receiver.wait_for(receiver.messages)
    assert [(one["data"]["arm"], one["data"]["previous_arm"]) for one in receiver.messages()] == [("arm-1", "arm-0")]
    assert len(_deliveries(admin, made)) == 1


def test_drift_is_told_once(admin: JsonClient, receiver: Receiver, key: str) -> None:
    """Of the arm whose rewards have changed, and not again while the history is as long."""
    admin.create(key, arms=arms(2), policy={"kind": "uniform"})
    _create(admin, receiver.url, experiments=[key], events=["drift.noticed"])
    _rewarded(admin, key, {"arm-0": 0.1, "arm-1": 0.5}, 512)
    for _ in range(4):
        _rewarded(admin, key, {"arm-0": 0.9, "arm-1": 0.5}, 60)
    receiver.wait_for(receiver.messages)
    (told,) = receiver.messages()
    assert (told["type"], told["data"]["arms"]) == ("drift.noticed", ["arm-0"])
    (event,) = admin.send("GET", f"/v1/experiments/{key}/events?kind=drift_noticed").body["events"]
    assert event["details"] == {"drifting": ["arm-0"]}
    _rewarded(admin, key, {"arm-0": 0.9, "arm-1": 0.5}, 60)
    receiver.wait_for(lambda: admin.send("GET", f"/v1/experiments/{key}/recommendation").body["draws"] == 812)
    assert len(admin.send("GET", f"/v1/experiments/{key}/events?kind=drift_noticed").body["events"]) == 1


@pytest.mark.parametrize(("template", "part"), [("slack", "text"), ("teams", "attachments")])
def test_chats_get_their_form(admin: JsonClient, receiver: Receiver, key: str, template: str, part: str) -> None:
    """Of a real event, with the experiment's name and the sentence in it."""
    made = _create(admin, receiver.url, experiments=[key], template=template)
    admin.create(key, arms=arms(2), name="Knöpfe <b>")
    admin.send("POST", f"/v1/experiments/{key}/pause")
    receiver.wait_for(lambda: receiver.requests)
    body = json.loads(receiver.requests[0].body)
    shown = json.dumps(body[part], ensure_ascii=False)
    assert "The experiment was paused." in shown
    assert ("Knöpfe &lt;b&gt;" if template == "slack" else "Knöpfe <b>") in shown
    assert receiver.requests[0].is_signed_by(made["secret"])


def test_metrics_count_attempts_and_what_waits(admin: JsonClient, receiver: Receiver, key: str) -> None:
    """By outcome; and the gauges are there."""

    def count(name: str) -> float:
        lines = admin.send("GET", "/metrics").body.decode().splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))

    before = [count(f'bestarm_webhook_attempts_total{{outcome="{one}"}}') for one in ("delivered", "failed")]
    _create(admin, receiver.url, experiments=[key])
    admin.create(key, arms=arms(2))
    receiver.faults.extend(["error"])
    admin.send("POST", f"/v1/experiments/{key}/pause")
    receiver.wait_for(receiver.messages)
    wanted = [before[0] + 1, before[1] + 1]
    receiver.wait_for(
        lambda: [count(f'bestarm_webhook_attempts_total{{outcome="{one}"}}') for one in ("delivered", "failed")] == wanted
    )
    text = admin.send("GET", "/metrics").body.decode()
    assert "bestarm_webhook_waiting " in text
    assert "bestarm_webhook_oldest_seconds " in text
