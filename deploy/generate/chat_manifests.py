"""Generates the pods and services of the chat channels from `deploy/chat_channels.py`."""

import re
from pathlib import Path

from deploy.chat_channels import CHAT_CHANNELS, ChatChannelSpec
from deploy.generate.pods import (
    REDIS_CA,
    dump_manifests,
    make_container,
    make_deployment,
    make_disruption_budget,
    make_pod,
)

_HEADER = """\
# Written by `python -m deploy.generate.manifests`; change deploy/chat_channels.py instead.
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


_FIRST_MARK = "# generated from deploy/chat_channels.py:"
_LAST_MARK = "# end of generated"


def chat_pages(folder: Path) -> dict[Path, str]:
    """Return the generated files of Kubernetes, by path in `folder`."""
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
    """Return the Compose file with one service for each chat channel."""
    return _replace_block(compose, "".join(map(_service, CHAT_CHANNELS)))


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
    """Return the list of resources with each channel; whether one is on is left as it is."""
    text = _read(file)
    lines = [
        f"  - {spec.name}.yaml\n"
        if f"\n  - {spec.name}.yaml\n" in text
        else f"  # - {spec.name}.yaml\n"
        for spec in CHAT_CHANNELS
    ]
    return _replace_block(text, "".join(lines))


def _replace_block(text: str, block: str) -> str:
    """Return a file with another text between its marks; raises `ValueError` without marks."""
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
    """Return the policies in which the chat channels, too, may reach public addresses."""
    text = _read(file)
    found = re.findall(r"values: \[(models, search[^]\n]{0,1000})\]", text)
    if len(found) != 1:
        raise ValueError(f"{file.name}: expected one list of components, found {len(found)}")
    names = dict.fromkeys([*found[0].split(", "), *(spec.name for spec in CHAT_CHANNELS)])
    return text.replace(f"values: [{found[0]}]", f"values: [{', '.join(names)}]")
