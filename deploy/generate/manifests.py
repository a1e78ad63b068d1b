"""Writes the Kubernetes manifests that are derived from code, and the workers' roles for Compose.

Run it with `python -m deploy.generate.manifests [--shards N]`.

`workers.yaml` runs the groups of roles, and `scaling.yaml` scales them. The roles of a group come
from `agents.roster`, the names of streams from `broker.keys`, the grace time from
`worker.shutdown`; the other files of `deploy/kubernetes/` and the rest of `compose.yaml` are
written by hand.

A group is scaled by its *depth*: the waiting and running entries on its roles' streams, over all
shards. Settled entries are deleted, so the depth is the total length of the streams. The `pending`
value of Redis excludes waiting entries; its `lag` excludes running ones and is unknown once an
unread entry was deleted.
"""

import argparse
import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agents.roster import AGENTS, PodGroup
from broker.keys import stream_key
from deploy.generate.pods import (
    REDIS_CA,
    TOOLS_FOLDER,
    Manifest,
    add_outside_tools,
    dump_manifests,
    make_container,
    make_deployment,
    make_disruption_budget,
    make_labels,
    make_pod,
)
from envelope.role import Role
from gateway.chat_channels import CHAT_CHANNELS, ChatChannelSpec

FOLDER = Path(__file__).parent.parent / "kubernetes"
COMPOSE = FOLDER.parent / "compose.yaml"
DATA_MOUNTS = {"search": "search:/data"}
"""Groups whose data folder must survive `down` and `up`."""
TOOLS_MOUNT = f"${{OUTSIDE_TOOLS_FOLDER:-./outside_tools}}:{TOOLS_FOLDER}:ro"
HEADER = (
    "# Written by `python -m deploy.generate.manifests{argument}`; "
    "change deploy/generate/manifests.py instead.\n"
)


@dataclass(frozen=True, slots=True)
class Group:
    """Roles that one Deployment runs: `works`, or the roles of the agents that declare this group.

    `depth_each` is the number of entries per replica beyond which another replica is started.
    """

    pods: PodGroup
    depth_each: int
    memory: tuple[str, str]
    cpu: str
    most: int
    also_scaled_by: tuple[Role, ...] = ()
    works: tuple[Role, ...] = ()
    least: int = 2
    variables: Mapping[str, str] = field(default_factory=dict)
    """Settings that only this group has."""

    @property
    def name(self) -> str:
        """The name of the group."""
        return self.pods.value

    @property
    def agents(self) -> tuple[Role, ...]:
        """The roles of the agents that declare this group."""
        return tuple(spec.role for spec in AGENTS if spec.pods is self.pods)

    @property
    def roles(self) -> tuple[Role, ...]:
        """The roles that the processes of this group run."""
        return self.works or self.agents

    @property
    def calls_tools(self) -> bool:
        """Whether processes in this group plan or execute tool calls."""
        return not {Role.REASON, Role.TOOL}.isdisjoint(self.agents)

    @property
    def scales_by(self) -> tuple[Role, ...]:
        """The roles whose streams determine the scaling of this group."""
        return (*self.roles, *self.also_scaled_by)


GROUPS = (
    Group(PodGroup.MANAGER, 256, ("128Mi", "512Mi"), "250m", 4, works=(Role.MANAGER,)),
    Group(PodGroup.LIGHT, 64, ("128Mi", "512Mi"), "250m", 6),
    Group(PodGroup.MODELS, 32, ("192Mi", "512Mi"), "250m", 20),
    Group(PodGroup.SEARCH, 16, ("384Mi", "1Gi"), "500m", 10, also_scaled_by=(Role.INGESTION,)),
    # One of each is always running: otherwise, ingestions are not divided among processes.
    Group(
        PodGroup.READ, 8, ("384Mi", "2Gi"), "1", 16, works=(Role.READ,), least=1,
        variables={"INGESTION_READERS": "2"},
    ),
    Group(PodGroup.WRITE, 64, ("384Mi", "1Gi"), "1", 8, works=(Role.WRITE,), least=1),
)  # fmt: skip
"""The groups. Their memory requests and limits exceed the measurements in `docs/deployment.md`."""
_HEADER = """\
# Written by `python -m deploy.generate.manifests`; change gateway/chat_channels.py instead.
# {note}
# Off until kustomization.yaml lists this file; the Secret `refdesk-{name}` holds the tokens.
"""
_EXAMPLE = """\
---
# Only where {name}.yaml is listed.
apiVersion: v1
kind: Secret
metadata:
  name: refdesk-{name}
stringData:
  REDIS_URL: rediss://refdesk-chat:PASSWORD@redis:6379/0?ssl_ca_certs={redis_ca}/ca.crt
{tokens}"""
_SERVICE = """\
  # {note}
  {name}:
    <<: *refdesk
    profiles: [{name}]
    command: [{name}, --gateway-only]
    environment:
      <<: *settings
{tokens}    volumes: ["/data"]

"""

_FIRST_MARK = "# generated from gateway/chat_channels.py:"
_LAST_MARK = "# end of generated"


def pages(shards: int = 1) -> dict[Path, str]:
    """Return the generated files, by path."""
    workers = [
        made for group in GROUPS for made in (deployment(group), make_disruption_budget(group.name))
    ]
    scaling = [make_scaled_object(group, shards) for group in GROUPS]
    argument = "" if shards == 1 else f" --shards {shards}"
    return {
        FOLDER / "workers.yaml": HEADER.format(argument="") + dump_manifests(workers),
        FOLDER / "scaling.yaml": HEADER.format(argument=argument) + dump_manifests(scaling),
        COMPOSE: write_chat_services(write_commands(COMPOSE.read_text(encoding="utf-8"))),
        **chat_pages(FOLDER),
    }


def write_commands(compose: str) -> str:
    """Return the Compose file with the roles and mounts of each group in its service.

    Raises `ValueError` if a group has no service.
    """
    for group in GROUPS:
        roles = ", ".join(role.value for role in group.roles)
        service = rf"^(  {group.name}:\n    <<: [^\n]*\n    command: \[worker, --role, )[^]\n]*"
        compose, replaced = re.subn(service, rf"\g<1>{roles}", compose, flags=re.MULTILINE)
        if replaced != 1:
            raise ValueError(f"expected one service {group.name!r} of workers, found {replaced}")
        mounts = [DATA_MOUNTS.get(group.name, "/data")]
        mounts += [TOOLS_MOUNT] if group.calls_tools else []
        volumes = rf"^(  {group.name}:\n(?:    [^\n]*\n)*?    volumes: )[^\n]*"
        compose = re.sub(volumes, rf"\g<1>{json.dumps(mounts)}", compose, flags=re.MULTILINE)
    return compose


def deployment(group: Group) -> Manifest:
    """Return the Deployment of a group."""
    container = make_container(
        "worker",
        ["worker", "--role", *(role.value for role in group.roles)],
        secret=_name(group),
        requests={"cpu": group.cpu, "memory": group.memory[0]},
        memory=group.memory[1],
    )
    container["env"] += [{"name": name, "value": text} for name, text in group.variables.items()]
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": make_labels(group.name)},
    }
    pod = make_pod(container, data_limit="512Mi", topologySpreadConstraints=[spread])
    if group.calls_tools:
        add_outside_tools(container, pod)
    # No `replicas`: KEDA sets them, and applying this again must not undo it.
    strategy = {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}
    return make_deployment(group.name, pod, strategy=strategy)


def make_scaled_object(group: Group, shards: int) -> Manifest:
    """Return the ScaledObject of a group, with one trigger per stream, based on the sum of their
    depths.
    """
    names = {
        f"{role.value}_{shard}": stream_key(role.value, shard)
        for role in group.scales_by
        for shard in range(shards)
    }
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": _name(group), "labels": make_labels(group.name)},
        "spec": {
            "scaleTargetRef": {"name": _name(group)},
            "minReplicaCount": group.least,
            "maxReplicaCount": group.most,
            "pollingInterval": 5,
            "cooldownPeriod": 120,
            # If Redis cannot be read, nothing is scaled down.
            "fallback": {
                "failureThreshold": 3,
                "replicas": group.least,
                "behavior": "currentReplicasIfHigher",
            },
            "advanced": {
                "scalingModifiers": {
                    "formula": " + ".join(names),
                    "target": str(group.depth_each),
                    "metricType": "AverageValue",
                }
            },
            "triggers": [_trigger(name, stream, group) for name, stream in names.items()],
        },
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the generated manifests, and the roles of the workers in `compose.yaml`."""
    parser = argparse.ArgumentParser(
        prog="python -m deploy.generate.manifests", description=main.__doc__
    )
    parser.add_argument("--shards", type=int, default=1, help="as in the setting SHARDS")
    chosen = parser.parse_args(arguments)
    for path, text in pages(chosen.shards).items():
        path.write_text(text, encoding="utf-8")
    return 0


def chat_pages(folder: Path) -> dict[Path, str]:
    """Return the generated Kubernetes files, by path in `folder`."""
    pods = {folder / f"{spec.name}.yaml": _pods(spec) for spec in CHAT_CHANNELS}
    return {
        **pods,
        folder / "kustomization.yaml": _with_resources(folder / "kustomization.yaml"),
        folder / "secret.example.yaml": _replace_block(
            _read(folder / "secret.example.yaml"), "".join(map(_secret, CHAT_CHANNELS))
        ),
        folder / "network.yaml": _with_components(folder / "network.yaml"),
    }


def write_chat_services(compose: str) -> str:
    """Return the Compose file with one service per chat channel."""
    return _replace_block(compose, "".join(map(_service, CHAT_CHANNELS)))


def _trigger(name: str, stream: str, group: Group) -> Manifest:
    return {
        "type": "redis-streams",
        "name": name,
        # No `consumerGroup`: with one, KEDA counts pending entries or lag, not the length.
        "metadata": {"stream": stream, "streamLength": str(group.depth_each)},
        "authenticationRef": {"name": "refdesk-redis"},
    }


def _name(group: Group) -> str:
    return f"refdesk-{group.name}"


def _pods(spec: ChatChannelSpec) -> str:
    container = make_container(
        spec.name,
        [spec.name, "--gateway-only"],
        secret=f"refdesk-{spec.name}",
        requests={"cpu": "100m", "memory": "128Mi"},
        memory="512Mi",
    )
    deployment = make_deployment(spec.name, make_pod(container, data_limit="256Mi"), replicas=2)
    header = _HEADER.format(note=spec.pod_note, name=spec.name)
    return header + dump_manifests([deployment, make_disruption_budget(spec.name)])


def _secret(spec: ChatChannelSpec) -> str:
    tokens = "".join(f"  {name}: {example}\n" for name, example in spec.secrets.items())
    return _EXAMPLE.format(name=spec.name, redis_ca=REDIS_CA, tokens=tokens)


def _service(spec: ChatChannelSpec) -> str:
    tokens = "".join(f"      {name}:\n" for name in spec.secrets)
    return _SERVICE.format(name=spec.name, note=spec.pod_note, tokens=tokens)


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def _with_resources(file: Path) -> str:
    """Return the list of resources with a line for each chat channel; the lines of disabled
    channels stay commented out.
    """
    text = _read(file)
    lines = [
        f"  - {spec.name}.yaml\n"
        if f"\n  - {spec.name}.yaml\n" in text
        else f"  # - {spec.name}.yaml\n"
        for spec in CHAT_CHANNELS
    ]
    return _replace_block(text, "".join(lines))


def _replace_block(text: str, block: str) -> str:
    """Return a file in which the text between its markers is replaced; raises `ValueError` without
    markers.
    """
    lines = text.splitlines(keepends=True)
    first = [at for at, line in enumerate(lines) if line.strip() == _FIRST_MARK]
    last = [at for at, line in enumerate(lines) if line.strip() == _LAST_MARK]
    if len(first) != 1 or len(last) != 1 or last < first:
        raise ValueError(
            "expected one pair of marks for the chat channels, "
            f"found {len(first)} and {len(last)} of them"
        )
    return "".join([*lines[: first[0] + 1], block, *lines[last[0] :]])


def _with_components(file: Path) -> str:
    """Return the network policies that also allow the chat channels to reach public addresses."""
    text = _read(file)
    matches = re.findall(r"values: \[(models, search[^]\n]{0,1000})\]", text)
    if len(matches) != 1:
        raise ValueError(f"{file.name}: expected one list of components, found {len(matches)}")
    names = dict.fromkeys([*matches[0].split(", "), *(spec.name for spec in CHAT_CHANNELS)])
    return text.replace(f"values: [{matches[0]}]", f"values: [{', '.join(names)}]")


if __name__ == "__main__":
    sys.exit(main())
