"""The parts that all generated pods have in common, and the progress steps that are shown to
people.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import yaml

from agents.agent import ProgressStep
from agents.roster import SPECS
from manager.flow_proofs import find_reached
from manager.flows import EVERY
from manager.flows.stages import START
from worker.shutdown import GRACE_SECONDS

IMAGE = "refdesk:latest"
HEALTH_PORT = 9090
LEAVING_SECONDS = 20
"""The time after the grace period for returning entries, closing the index, and a slow Redis."""
USER = 10001
REDIS_CA = "/etc/refdesk/redis"
"""The folder of a pod that contains `ca.crt`, with which the certificate of Redis is verified."""

OUTSIDE_TOOLS = "refdesk-outside-tools"
"""The ConfigMap with the file of external tools, and the Secret with the variables used in it."""
TOOLS_FOLDER = "/etc/refdesk/tools"

Manifest = dict[str, Any]


class _WholeDumper(yaml.SafeDumper):
    """Writes repeated values in full instead of as references, because people read these files."""

    def ignore_aliases(self, data: Any) -> bool:
        """Repeat values that occur several times, instead of using aliases."""
        return True


def make_labels(component: str) -> dict[str, str]:
    """Return the labels of a component of the desk."""
    return {"app.kubernetes.io/name": "refdesk", "app.kubernetes.io/component": component}


def make_deployment(component: str, pod: Manifest, **options: Any) -> Manifest:
    """Return the Deployment of a component, whose pods are monitored by Prometheus."""
    labels = make_labels(component)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": f"refdesk-{component}", "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            **options,
            "template": {
                "metadata": {
                    "labels": labels,
                    "annotations": {
                        "prometheus.io/scrape": "true",
                        "prometheus.io/port": str(HEALTH_PORT),
                    },
                },
                "spec": pod,
            },
        },
    }


def make_disruption_budget(component: str) -> Manifest:
    """Return the disruption budget that keeps all replicas except one running while nodes are
    drained.
    """
    labels = make_labels(component)
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": f"refdesk-{component}", "labels": labels},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": labels}},
    }


def make_pod(container: Manifest, *, data_limit: str, **options: Any) -> Manifest:
    """Return a pod with one container, minimal privileges, and size-limited scratch folders."""
    return {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": int(GRACE_SECONDS) + LEAVING_SECONDS,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        **options,
        "containers": [container],
        "volumes": [
            {"name": "data", "emptyDir": {"sizeLimit": data_limit}},
            {"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}},
            {"name": "redis-ca", "configMap": {"name": "refdesk-redis-ca"}},
        ],
    }


def make_container(
    name: str, arguments: Sequence[str], *, secret: str, requests: Mapping[str, str], memory: str
) -> Manifest:
    """Return a container with the settings, a secret, probes, and a memory limit."""
    return {
        "name": name,
        "image": IMAGE,
        "args": list(arguments),
        "envFrom": [
            {"configMapRef": {"name": "refdesk"}},
            {"secretRef": {"name": secret}},
        ],
        "env": [{"name": "HEALTH_PORT", "value": str(HEALTH_PORT)}],
        "ports": [{"name": "health", "containerPort": HEALTH_PORT}],
        "startupProbe": _probe("/healthz", every=2, failures=60),
        "livenessProbe": _probe("/healthz", every=10, failures=3),
        "readinessProbe": _probe("/readyz", every=5, failures=2),
        "resources": {"requests": dict(requests), "limits": {"memory": memory}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "data", "mountPath": "/data"},
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - a folder used only by the pod
            {"name": "redis-ca", "mountPath": REDIS_CA, "readOnly": True},
        ],
    }


def add_outside_tools(container: Manifest, pod: Manifest) -> None:
    """Mount the file of `OUTSIDE_TOOLS` with its documents, and provide the secrets used in it.

    Both are optional, so a pod without them starts.
    """
    named = {"name": OUTSIDE_TOOLS, "optional": True}
    container["envFrom"].append({"secretRef": dict(named)})
    mount = {"name": "outside-tools", "mountPath": TOOLS_FOLDER, "readOnly": True}
    container["volumeMounts"].append(mount)
    pod["volumes"].append({"name": "outside-tools", "configMap": dict(named)})


def dump_manifests(manifests: Sequence[Manifest]) -> str:
    """Return the manifests as one YAML file."""
    return yaml.dump_all(
        manifests, Dumper=_WholeDumper, sort_keys=False, explicit_start=True, width=100
    )


@cache
def list_steps() -> Mapping[str, ProgressStep]:
    """Return the step for every stage. While branches are running, the step is the search step."""
    stages = {stage for flow in EVERY for stage in find_reached(flow, START)} - {START}
    return {
        stage.name: SPECS[stage.role.value].step
        if stage.role.value in SPECS
        else ProgressStep.SEARCH
        for stage in sorted(stages, key=lambda item: item.name)
    }


def find_step(stage: str) -> ProgressStep:
    """Return the step for a stage, or the first step for an unknown stage from another release."""
    return list_steps().get(stage, next(iter(ProgressStep)))


def _probe(path: str, *, every: int, failures: int) -> Manifest:
    return {
        "httpGet": {"path": path, "port": "health"},
        "periodSeconds": every,
        "timeoutSeconds": 3,
        "failureThreshold": failures,
    }
