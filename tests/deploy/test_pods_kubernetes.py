"""The manifests are valid, name streams and settings that exist, and scale on the true depth."""

import sys
from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from broker.embedded_redis import Endpoint
from broker.keys import stream_key
from broker.redis_broker import RedisBroker
from broker.values import Finish, Submission
from config.settings import Settings, load_settings
from deploy.assembly.runtime import INGESTION, READ, ROLES, WRITE
from deploy.generate import manifests
from deploy.generate.manifests import FOLDER, GROUPS, deployment, make_scaled_object, pages
from deploy.generate.pods import LEAVING_SECONDS, OUTSIDE_TOOLS, REDIS_CA, TOOLS_FOLDER
from deploy.generate.redis_users import CHAT, GATEWAY, READER, SCALER, WORKER, WRITER
from envelope.outcome import Outcome
from envelope.question import Question
from gateway.chat_channels import CHAT_CHANNELS
from tests.deploy.test_pods_compose import is_understood
from worker.shutdown import GRACE_SECONDS

Manifest = dict[str, Any]
FOREIGN = ("keda.sh/", "monitoring.coreos.com/", "kustomize.config.k8s.io/")
"""What Kubernetes itself has no schema of."""


def read_manifests() -> Iterator[tuple[str, Manifest]]:
    for path in sorted(FOLDER.glob("*.yaml")):
        for manifest in yaml.safe_load_all(path.read_text()):
            yield f"{path.name}: {manifest['kind']}", manifest


ALL = list(read_manifests())
DEPLOYMENTS = [manifest for _, manifest in ALL if manifest["kind"] == "Deployment"]
CONTAINERS = [item["spec"]["template"]["spec"]["containers"][0] for item in DEPLOYMENTS]


def of_kind(kind: str) -> list[Manifest]:
    return [manifest for _, manifest in ALL if manifest["kind"] == kind]


@pytest.mark.slow
@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param(each, id=name)
        for name, each in ALL
        if not each["apiVersion"].startswith(FOREIGN)
    ],
)
def test_kubernetes_knows_every_word(manifest: Manifest) -> None:
    # Imported here: it compiles forty grammars, which every process that collects tests would wait
    # for.
    import kubernetes_validate

    kubernetes_validate.validate(manifest, "1.37", strict=True)


def test_the_drawn_files_are_fresh() -> None:
    for path, text in pages().items():
        assert path.read_text() == text, f"stale: run {sys.executable} -m deploy.generate.manifests"


def test_whatever_is_applied_is_listed_and_secrets_are_not() -> None:
    [listed] = of_kind("Kustomization")

    files = {path.name for path in FOLDER.glob("*.yaml")}
    off = {"alarms.yaml", *(f"{spec.name}.yaml" for spec in CHAT_CHANNELS)}
    assert files - set(listed["resources"]) == {"kustomization.yaml", "secret.example.yaml", *off}
    described = (FOLDER / "kustomization.yaml").read_text()
    assert all(f"  # - {name}\n" in described for name in off)


def test_the_groups_work_for_every_role_and_scale_on_every_stream() -> None:
    worked = {role.value for group in GROUPS for role in group.roles}
    scaled = [role.value for group in GROUPS for role in group.scales_by]

    assert worked == {*ROLES, READ, WRITE}
    assert sorted(scaled) == sorted([*ROLES, INGESTION, READ, WRITE])


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.name)
def test_a_group_is_scaled_by_the_sum_of_its_streams(group: manifests.Group, shards: int) -> None:
    spec = make_scaled_object(group, shards)["spec"]
    triggers = spec["triggers"]

    assert {trigger["metadata"]["stream"] for trigger in triggers} == {
        stream_key(role.value, shard) for role in group.scales_by for shard in range(shards)
    }
    names = [trigger["name"] for trigger in triggers]
    assert spec["advanced"]["scalingModifiers"]["formula"] == " + ".join(names)
    assert len(set(names)) == len(names)
    assert all(name.isidentifier() for name in names)
    assert spec["scaleTargetRef"]["name"] == deployment(group)["metadata"]["name"]


def test_keda_counts_the_length_of_a_stream_and_knows_every_word() -> None:
    fields = {"scaleTargetRef", "minReplicaCount", "maxReplicaCount", "pollingInterval"}
    fields |= {"cooldownPeriod", "fallback", "advanced", "triggers"}

    for scaled in of_kind("ScaledObject"):
        assert set(scaled["spec"]) == fields
        for trigger in scaled["spec"]["triggers"]:
            assert trigger["type"] == "redis-streams"
            # With `consumerGroup` it would count what is pending, or the lag.
            assert set(trigger["metadata"]) == {"stream", "streamLength"}
            assert all(isinstance(value, str) for value in trigger["metadata"].values())
            assert trigger["authenticationRef"]["name"] == "refdesk-redis"


@pytest.mark.parametrize("container", CONTAINERS, ids=lambda item: " ".join(item["args"][:3]))
def test_no_container_may_do_more_than_it_needs(container: Manifest) -> None:
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {"requests", "limits"} == set(container["resources"])
    mounts = {each["mountPath"]: each.get("readOnly", False) for each in container["volumeMounts"]}
    assert mounts.pop(TOOLS_FOLDER, True), "nobody writes to the folder of outside tools"
    assert mounts == {"/data": False, "/tmp": False, REDIS_CA: True}  # noqa: S108


@pytest.mark.parametrize("container", CONTAINERS, ids=lambda item: " ".join(item["args"][:3]))
def test_a_container_runs_what_the_command_understands(container: Manifest) -> None:
    assert is_understood(container["args"])


@pytest.mark.parametrize("one", DEPLOYMENTS, ids=lambda item: item["metadata"]["name"])
def test_a_pod_is_nobody_and_may_take_its_grace_time(one: Manifest) -> None:
    pod = one["spec"]["template"]["spec"]

    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    assert pod["enableServiceLinks"] is False
    assert pod["terminationGracePeriodSeconds"] >= GRACE_SECONDS + LEAVING_SECONDS


@pytest.mark.parametrize("container", CONTAINERS, ids=lambda item: " ".join(item["args"][:3]))
def test_a_pod_is_asked_whether_it_lives_and_whether_it_can_work(container: Manifest) -> None:
    paths = {
        name: container[f"{name}Probe"]["httpGet"]["path"]
        for name in ("startup", "liveness", "readiness")
    }
    ports = {port["name"] for port in container["ports"]}

    assert paths == {"startup": "/healthz", "liveness": "/healthz", "readiness": "/readyz"}
    assert {container["livenessProbe"]["httpGet"]["port"]} <= ports


def test_each_deployment_has_a_disruption_budget() -> None:
    chosen = [budget["spec"]["selector"] for budget in of_kind("PodDisruptionBudget")]

    assert all(deployment["spec"]["selector"] in chosen for deployment in DEPLOYMENTS)


def test_pods_get_settings_that_exist_and_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    [config_map] = [item for item in of_kind("ConfigMap") if item["metadata"]["name"] == "refdesk"]
    secrets = [item for item in of_kind("Secret") if item["metadata"]["name"] != "refdesk-redis"]
    given = {**config_map["data"]}
    for secret in secrets:
        given.update(secret["stringData"])
    named = {item["name"] for container in CONTAINERS for item in container.get("env", ())}

    assert {name.lower() for name in {*given, *named}} <= set(Settings.model_fields)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert load_settings(_env_file=None).shards == 1
    known = {item["metadata"]["name"] for item in of_kind("Secret")}
    asked = {
        source["secretRef"]["name"]
        for container in CONTAINERS
        for source in container["envFrom"]
        if "secretRef" in source
    }
    assert asked - {OUTSIDE_TOOLS} == known - {"refdesk-redis"}


SECRETS = {
    item["metadata"]["name"]: set(item["stringData"])
    for item in of_kind("Secret")
    if item["metadata"]["name"] != "refdesk-redis"
}


@pytest.mark.parametrize("one", DEPLOYMENTS, ids=lambda item: item["metadata"]["name"])
def test_each_group_has_a_secret_of_its_own_and_no_other(one: Manifest) -> None:
    [container] = one["spec"]["template"]["spec"]["containers"]
    secrets = [
        source["secretRef"]["name"] for source in container["envFrom"] if "secretRef" in source
    ]

    name = one["metadata"]["name"]
    assert secrets == [name, *([OUTSIDE_TOOLS] if name == "refdesk-search" else [])]


def test_only_pods_that_call_tools_get_the_file_of_outside_tools_and_its_secrets() -> None:
    mounted = {
        deployment["metadata"]["name"]: volume["configMap"]
        for deployment in DEPLOYMENTS
        for volume in deployment["spec"]["template"]["spec"]["volumes"]
        if volume["name"] == "outside-tools"
    }
    [search] = [container for container in CONTAINERS if "tool" in container["args"]]

    assert mounted == {"refdesk-search": {"name": OUTSIDE_TOOLS, "optional": True}}
    mount = {"name": "outside-tools", "mountPath": TOOLS_FOLDER, "readOnly": True}
    assert mount in search["volumeMounts"]
    assert {"secretRef": {"name": OUTSIDE_TOOLS, "optional": True}} in search["envFrom"]
    assert "reason" in search["args"], "who plans calls of tools reads the file, too"


def test_a_group_gets_the_secrets_that_it_needs_and_no_others() -> None:
    vendors, index = {"OPENAI_API_KEY"}, {"QDRANT_API_KEY"}

    assert {name: held - {"REDIS_URL"} for name, held in SECRETS.items()} == {
        "refdesk-manager": set(),
        "refdesk-light": set(),
        "refdesk-models": vendors,
        "refdesk-search": vendors | index,
        "refdesk-read": set(),
        "refdesk-write": vendors | index,
        "refdesk-gateway": index,
        **{f"refdesk-{spec.name}": set(spec.secrets) for spec in CHAT_CHANNELS},
    }


def test_every_group_reaches_redis_over_tls_as_the_user_that_is_made_for_it() -> None:
    users = dict.fromkeys(("manager", "light", "models", "search"), WORKER)
    users |= {"gateway": GATEWAY, "read": READER, "write": WRITER}
    users |= {spec.name: CHAT for spec in CHAT_CHANNELS}

    for secret in of_kind("Secret"):
        name = secret["metadata"]["name"].removeprefix("refdesk-")
        if name == "redis":
            assert secret["stringData"]["username"] == SCALER.name
            assert secret["stringData"]["tls"] == "enable"
            continue
        url = urlsplit(secret["stringData"]["REDIS_URL"])
        assert (url.scheme, url.username) == ("rediss", users[name].name)
        assert url.query == f"ssl_ca_certs={REDIS_CA}/ca.crt"


def find_egress(component: str) -> set[int]:
    """The ports at which the pods of a component may reach others."""
    labels = {"app.kubernetes.io/name": "refdesk", "app.kubernetes.io/component": component}
    ports: set[int] = set()
    for policy in of_kind("NetworkPolicy"):
        selector = policy["spec"]["podSelector"]
        chosen = selector.get("matchLabels", {}).items() <= labels.items() and all(
            (labels[rule["key"]] in rule["values"]) == (rule["operator"] == "In")
            for rule in selector.get("matchExpressions", ())
        )
        for rule in policy["spec"].get("egress", ()) if chosen else ():
            assert rule["to"]
            ports |= {port["port"] for port in rule["ports"]}
    return ports


def test_pods_reach_what_they_need_and_nothing_else() -> None:
    [deny] = [
        item for item in of_kind("NetworkPolicy") if item["metadata"]["name"] == "refdesk-deny"
    ]

    assert deny["spec"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    assert {name: find_egress(name) for name in (*(group.name for group in GROUPS), "gateway")} == {
        "manager": {53, 6379},
        "light": {53, 6379},
        "models": {53, 6379, 443},
        "search": {53, 6379, 443, 6333, 6334},
        "read": {53, 6379},
        "write": {53, 6379, 443, 6333, 6334},
        "gateway": {53, 6379, 6333, 6334},
    }
    assert all(find_egress(spec.name) == {53, 6379, 443} for spec in CHAT_CHANNELS)


def test_pods_never_reach_the_metadata_of_the_cloud_nor_private_addresses() -> None:
    [vendors] = [
        rule
        for policy in of_kind("NetworkPolicy")
        for rule in policy["spec"].get("egress", ())
        if {"port": 443, "protocol": "TCP"} in rule["ports"]
    ]
    blocks = [(vendor["ipBlock"]["cidr"], vendor["ipBlock"]["except"]) for vendor in vendors["to"]]

    for address in ("169.254.169.254", "10.0.0.1", "192.168.1.1", "172.20.0.1", "fd00::1"):
        ip = ip_address(address)
        for cidr, excepted in blocks:
            if ip in ip_network(cidr):
                assert any(ip in ip_network(item) for item in excepted), address


def test_alarms_watch_the_memory_of_redis() -> None:
    [rule] = of_kind("PrometheusRule")
    [group] = rule["spec"]["groups"]

    assert any("redis_memory_used_bytes" in alarm["expr"] for alarm in group["rules"])


async def test_the_length_of_a_stream_is_what_waits_and_what_runs(endpoint: Endpoint) -> None:
    client = endpoint.client()
    broker = RedisBroker(client)
    await broker.prepare(["lang"])
    for number in range(5):
        asked = Question(
            tenant="t", assistant="a", conversation_id=f"c{number}", message_id=f"m{number}"
        )
        await broker.producer.submit(
            Submission(asked, b"frame", "lang", 60.0, {"outcome": "failed"})
        )
    taken = await broker.consumer.take("lang", "w", slots=3, block_seconds=0)
    await broker.settle([(taken[0], Finish(Outcome.ANSWERED, {"outcome": "answered"}))])

    [trigger] = [
        each
        for group in GROUPS
        for each in make_scaled_object(group, 1)["spec"]["triggers"]
        if each["name"] == "lang_0"
    ]
    length = await client.xlen(trigger["metadata"]["stream"])

    [status] = await broker.admin.read_status(["lang"])
    assert (length, status.depth, status.in_flight) == (4, 4, 2)
    await client.aclose()
