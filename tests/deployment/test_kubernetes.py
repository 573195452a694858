"""The manifests for Kubernetes: rendered, valid by the schemas of several releases, in step with the service and the image."""

from __future__ import annotations

import re
import subprocess
from typing import Any

import kubernetes_validate
import pytest
import yaml

from service import serving
from service.domain import limits
from service.settings import Settings
from service.web.hosts import AllowedHosts
from tests.docs.texts import ROOT, text_of

pytestmark = pytest.mark.process
_FOLDER = ROOT / "deploy/kubernetes"
_USER = 10001
_STREAMS = "bestarm-streams"


@pytest.fixture(scope="module")
def manifests() -> dict[str, dict[str, Any]]:
    """What `kubectl apply -k` would send, by kind; the second ingress by its name."""
    rendered = subprocess.run(["kubectl", "kustomize", _FOLDER], capture_output=True, text=True, check=False)  # noqa: S607
    assert rendered.returncode == 0, rendered.stderr
    return {_STREAMS if one["metadata"]["name"] == _STREAMS else one["kind"]: one for one in yaml.safe_load_all(rendered.stdout)}


def _pods(manifests: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    return [manifests[kind]["spec"]["template"]["spec"] for kind in ("Deployment", "Job")]


def _container(manifests: dict[str, dict[str, Any]]) -> dict[str, Any]:
    (container,) = manifests["Deployment"]["spec"]["template"]["spec"]["containers"]
    named: dict[str, Any] = container
    return named


@pytest.mark.parametrize("version", ["1.30", "1.34", "1.37"])
def test_every_manifest_is_valid(manifests: dict[str, dict[str, Any]], version: str) -> None:
    """Strictly: a field that Kubernetes does not know is a mistake."""
    for manifest in manifests.values():
        assert kubernetes_validate.validate(manifest, version, strict=True).startswith(version)


def test_nothing_is_left_out(manifests: dict[str, dict[str, Any]]) -> None:
    """Every file of the folder is a part of it, and all that a deployment needs is there, in one namespace."""
    listed = yaml.safe_load((_FOLDER / "kustomization.yaml").read_text())["resources"]
    beside = {"kustomization.yaml", "prometheus-adapter.yaml"}
    assert sorted(listed) == sorted({path.name for path in _FOLDER.glob("*.yaml")} - beside)
    kinds = "Namespace ServiceAccount ConfigMap Job Deployment Service Ingress PodDisruptionBudget HorizontalPodAutoscaler"
    assert set(manifests) == {*kinds.split(), "NetworkPolicy", _STREAMS}
    assert {one["metadata"].get("namespace", "bestarm") for one in manifests.values()} == {"bestarm"}


def test_pods_have_no_more_rights_than_they_need(manifests: dict[str, dict[str, Any]]) -> None:
    """What the namespace enforces: no root, no capability, nothing writable but /tmp; and nothing to ask the cluster with."""
    assert manifests["Namespace"]["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    user = re.search(r"^USER (\d+):(\d+)$", text_of("Dockerfile"), re.MULTILINE)
    assert user is not None
    assert {int(user[1]), int(user[2])} == {_USER}
    for pod in _pods(manifests):
        context = pod["securityContext"]
        assert (context["runAsNonRoot"], context["runAsUser"], context["runAsGroup"], context["fsGroup"]) == (True, *[_USER] * 3)
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["automountServiceAccountToken"] is pod["enableServiceLinks"] is False
        (container,) = pod["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["limits"]["memory"]
        writable = [mount["mountPath"] for mount in container["volumeMounts"] if not mount.get("readOnly")]
        assert writable == ["/tmp"]  # noqa: S108 - of the container


def test_settings_are_settings_of_the_service_and_no_secret_is_among_them(manifests: dict[str, dict[str, Any]]) -> None:
    """By their names; what is secret is a file of the secret."""
    given = manifests["ConfigMap"]["data"] | {one["name"]: one["value"] for one in _container(manifests)["env"]}
    values = {name.removeprefix("BESTARM_").lower(): value for name, value in given.items()}
    assert set(values) <= set(Settings.model_fields)
    Settings(**{name: value for name, value in values.items() if not name.endswith("_file")})
    mounted = [mount["mountPath"] for mount in _container(manifests)["volumeMounts"] if mount["name"] == "secrets"]
    assert {value.rpartition("/")[0] for name, value in values.items() if name.endswith("_file")} == set(mounted)
    assert {"admin_key", "oidc_client_secret"}.isdisjoint(values)
    assert "@" in values["database_url"]
    assert ":" not in values["database_url"].partition("://")[2].partition("@")[0]


def test_a_pod_ends_without_losing_a_request(manifests: dict[str, dict[str, Any]]) -> None:
    """It waits until it is no longer asked, then has its whole grace, before it is killed; never are all away at once."""
    pod = manifests["Deployment"]["spec"]["template"]["spec"]
    _, seconds = _container(manifests)["lifecycle"]["preStop"]["exec"]["command"]
    assert pod["terminationGracePeriodSeconds"] > int(seconds) + serving.GRACE_SECONDS
    assert manifests["Deployment"]["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    assert (
        manifests["PodDisruptionBudget"]["spec"]["maxUnavailable"] < manifests["HorizontalPodAutoscaler"]["spec"]["minReplicas"]
    )


def test_probes_ask_for_what_they_mean(manifests: dict[str, dict[str, Any]]) -> None:
    """A database that is away takes a pod out of the traffic, and never restarts it."""
    container = _container(manifests)
    asked = {probe: container[f"{probe}Probe"]["httpGet"] for probe in ("startup", "liveness", "readiness")}
    paths = {probe: get["path"] for probe, get in asked.items()}
    assert paths == {"startup": "/healthz", "liveness": "/healthz", "readiness": "/readyz"}


def test_probes_ask_by_a_name_that_is_always_accepted(manifests: dict[str, dict[str, Any]]) -> None:
    """Left to itself Kubernetes asks by the pod's address, which is 421 as soon as the allowed names are set."""
    container = _container(manifests)
    hosts = AllowedHosts("0.0.0.0", ["bestarm.example.com"])  # noqa: S104 - as in the pod
    assert hosts.accepts(b"10.1.2.3:8000") is False
    for probe in ("startup", "liveness", "readiness"):
        headers = container[f"{probe}Probe"]["httpGet"]["httpHeaders"]
        assert [(one["name"], hosts.accepts(one["value"].encode())) for one in headers] == [("Host", True)]


def test_everything_finds_the_pods(manifests: dict[str, dict[str, Any]]) -> None:
    """Selectors and ports say the same, from the ingress down; the migration gets no traffic."""
    labels = manifests["Deployment"]["spec"]["template"]["metadata"]["labels"]
    selector = {"matchLabels": labels}
    assert manifests["Deployment"]["spec"]["selector"] == manifests["PodDisruptionBudget"]["spec"]["selector"] == selector
    assert manifests["Service"]["spec"]["selector"] == labels
    assert manifests["Job"]["spec"]["template"]["metadata"]["labels"] != labels
    ports = {port["name"]: port["containerPort"] for port in _container(manifests)["ports"]}
    (port,) = manifests["Service"]["spec"]["ports"]
    for ingress in ("Ingress", _STREAMS):
        (rule,) = manifests[ingress]["spec"]["rules"]
        assert rule["http"]["paths"][0]["backend"]["service"] == {"name": "bestarm", "port": {"name": port["name"]}}
    assert port["targetPort"] in ports
    allowed = [one["ports"][0]["port"] for one in manifests["NetworkPolicy"]["spec"]["ingress"]]
    assert allowed == [ports["http"], ports["metrics"]]
    environment = {one["name"]: one["value"] for one in _container(manifests)["env"]}
    assert int(environment["BESTARM_METRICS_PORT"]) == ports["metrics"]
    assert f'--port, "{ports["http"]}"' in text_of("deploy/kubernetes/deployment.yaml")


def test_the_autoscaler_goes_by_a_number_that_the_adapter_makes_of_ours(manifests: dict[str, dict[str, Any]]) -> None:
    """Of a series that the service has."""
    (rule,) = yaml.safe_load((_FOLDER / "prometheus-adapter.yaml").read_text())["rules"]
    (pods,) = [one["pods"] for one in manifests["HorizontalPodAutoscaler"]["spec"]["metrics"] if one["type"] == "Pods"]
    assert pods["metric"]["name"] == rule["name"]["as"]
    assert rule["seriesQuery"].startswith("bestarm_request_seconds_count{")


def test_streams_of_lines_have_an_ingress_without_a_limit(manifests: dict[str, dict[str, Any]]) -> None:
    """For their route alone, of the same site; all others keep the limit. The controller begins each path with `^` itself."""
    usual, streams = manifests["Ingress"], manifests[_STREAMS]
    prefix = "nginx.ingress.kubernetes.io"
    assert usual["metadata"]["annotations"][f"{prefix}/proxy-body-size"] == f"{limits.MOST_BATCH_BODY_BYTES >> 20}m"
    assert streams["metadata"]["annotations"][f"{prefix}/proxy-body-size"] == "0"
    assert streams["metadata"]["annotations"][f"{prefix}/proxy-request-buffering"] == "off"
    assert streams["spec"]["tls"] == usual["spec"]["tls"]
    (rule,) = streams["spec"]["rules"]
    assert rule["host"] == usual["spec"]["rules"][0]["host"]
    path = re.compile(rule["http"]["paths"][0]["path"])
    assert path.match("/v1/experiments/checkout-button/observations")
    assert not path.match("/v1/experiments/checkout-button/observations/mine")
    assert not path.match("/v1/experiments/checkout-button/assignments/batch")


def test_an_upgrade_with_a_gap_leaves_pods_behind(manifests: dict[str, dict[str, Any]]) -> None:
    """The deployment names no number, so what scales it to none must scale it up again: no autoscaler looks at none."""
    assert "replicas" not in manifests["Deployment"]["spec"]
    page = text_of("docs/deployment.md")
    assert page.count("--replicas=0") == 1
    (recipe,) = [block for block in re.findall(r"```sh\n(.*?)```", page, re.DOTALL) if "--replicas=0" in block]
    steps = re.findall(r"--replicas=\d+|--for=delete|delete job|apply -k|--for=condition=complete|rollout status", recipe)
    again = f"--replicas={manifests['HorizontalPodAutoscaler']['spec']['minReplicas']}"
    assert steps == [
        *("--replicas=0", "--for=delete", "delete job", "apply -k", "--for=condition=complete", again, "rollout status"),
    ]
    (labels,) = re.findall(r"--for=delete pod --selector (\S+)=(\S+)", recipe)
    assert manifests["Deployment"]["spec"]["template"]["metadata"]["labels"][labels[0]] == labels[1]
