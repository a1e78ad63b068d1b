"""Writes the Helm chart from the Kubernetes manifests: `python -m deploy.generate.chart FOLDER`.

The manifests remain the source. A template is a manifest in which values that differ between
installations are replaced with references to `values.yaml`. Secrets are created by the operator, as
shown in `secret.example.yaml`.
"""

import argparse
import json
import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from deploy.generate.manifests import FOLDER, GROUPS
from deploy.generate.pods import IMAGE
from gateway.chat_channels import CHAT_CHANNELS

HEADER = "{{- /* Written by `python -m deploy.generate.chart` from deploy/kubernetes. */ -}}\n"
IMAGE_VALUE = (
    '"{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}'
    '{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}"'
)
CONDITIONS: dict[str, str] = {
    "redis-access.yaml": ".Values.scaling.enabled",
    "scaling.yaml": ".Values.scaling.enabled",
    "network.yaml": ".Values.networkPolicies.enabled",
    "alarms.yaml": ".Values.alarms.enabled",
    **{f"{spec.name}.yaml": f".Values.{spec.name}.enabled" for spec in CHAT_CHANNELS},
}
"""The value that enables each optional file."""
ALWAYS = ("workers.yaml", "gateway.yaml")
SETTINGS = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: refdesk
data:
{{- range $name, $value := .Values.settings }}
  {{ $name }}: {{ $value | quote }}
{{- end }}
"""
NOTES = """\
Refdesk {{ .Chart.AppVersion }} is installed in {{ .Release.Namespace }}.

1. Make the ConfigMap refdesk-redis-ca and the Secrets refdesk-<group>, as
   deploy/kubernetes/secret.example.yaml shows; pods wait until they are there.
2. Read documents into the index (docs/deployment.md).
3. kubectl --namespace {{ .Release.Namespace }} exec deploy/refdesk-gateway -- refdesk doctor
{{- if not .Values.scaling.enabled }}

Scaling is off: each group runs {{ .Values.scaling.replicas }} replicas.
{{- end }}
"""


def make_chart() -> dict[str, str]:
    """Return the files of the chart, by path in its folder."""
    version = tomllib.loads((FOLDER.parent.parent / "pyproject.toml").read_text("utf-8"))
    templates = {
        f"templates/{name}": HEADER + _make_template(name) for name in (*ALWAYS, *CONDITIONS)
    }
    values = make_values()
    return {
        "Chart.yaml": _dump(
            {
                "apiVersion": "v2",
                "name": "refdesk",
                "description": "Answers questions from an organisation's documents and cites the "
                "sources.",
                "type": "application",
                "version": version["project"]["version"],
                "appVersion": version["project"]["version"],
                "kubeVersion": ">=1.29.0-0",
            }
        ),
        "values.yaml": "# docs/deployment.md explains these values.\n" + _dump(values),
        "values.schema.json": json.dumps(make_schema(values), indent=2) + "\n",
        "templates/settings.yaml": HEADER + SETTINGS,
        "templates/NOTES.txt": NOTES,
        **templates,
    }


def make_values() -> dict[str, Any]:
    """Return the default values, which are those in the manifests."""
    settings = yaml.safe_load((FOLDER / "settings.yaml").read_text("utf-8"))["data"]
    return {
        "image": {"repository": "refdesk", "tag": "", "digest": "", "pullPolicy": "IfNotPresent"},
        "settings": settings,
        "gateway": {"replicas": 2},
        "scaling": {
            "enabled": True,
            "replicas": 2,
            "most": {group.name: group.most for group in GROUPS},
        },
        "networkPolicies": {"enabled": True},
        "alarms": {"enabled": False},
        **{spec.name: {"enabled": False, "replicas": 2} for spec in CHAT_CHANNELS},
    }


def make_schema(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of the values; only `settings` may contain additional names."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {
            # Helm adds `global` to the values of every chart.
            "global": {"type": "object"},
            **{name: _describe(name, value) for name, value in values.items()},
        },
        "additionalProperties": False,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the chart into a folder."""
    parser = argparse.ArgumentParser(
        prog="python -m deploy.generate.chart", description=main.__doc__
    )
    parser.add_argument("folder", type=Path)
    chosen = parser.parse_args(arguments)
    for name, text in make_chart().items():
        path = chosen.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return 0


def _describe(name: str, value: Any) -> dict[str, Any]:
    if name == "settings":
        scalar = {"type": ["string", "number", "boolean"]}
        pattern = {"^[A-Z][A-Z0-9_]*$": scalar}
        return {"type": "object", "patternProperties": pattern, "additionalProperties": False}
    if isinstance(value, Mapping):
        known = {key: _describe(key, item) for key, item in value.items()}
        return {"type": "object", "properties": known, "additionalProperties": False}
    if isinstance(value, bool):
        return {"type": "boolean"}
    return {"type": "integer", "minimum": 1} if isinstance(value, int) else {"type": "string"}


def _make_template(name: str) -> str:
    text = (FOLDER / name).read_text("utf-8")
    text = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("#"))
    # The templates of Prometheus alarms must not be interpreted by Helm.
    text = text.replace("{{", '{{ "{{" }}') if name == "alarms.yaml" else text
    text = re.sub(
        rf"^( *)image: {IMAGE}$",
        rf"\1image: {IMAGE_VALUE}\n\1imagePullPolicy: {{{{ .Values.image.pullPolicy }}}}",
        text,
        flags=re.MULTILINE,
    )
    component = name.removesuffix(".yaml")
    text = re.sub(
        r"^  replicas: 2$", f"  replicas: {{{{ .Values.{component}.replicas }}}}", text,
        flags=re.MULTILINE,
    )  # fmt: skip
    text = _add_fixed_replicas(text) if name == "workers.yaml" else text
    text = _set_most_replicas(text) if name == "scaling.yaml" else text
    condition = CONDITIONS.get(name)
    return text if condition is None else f"{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n"


def _set_most_replicas(text: str) -> str:
    """Replace the maximum number of replicas of each group with a reference to a value of the
    chart.

    In a manifest, the group's name precedes its limit.
    """
    lines, group = [], ""
    for line in text.splitlines(keepends=True):
        named, limit = line.partition("name: refdesk-")[2].strip(), "  maxReplicaCount: "
        group = named or group
        changed = f"{limit}{{{{ .Values.scaling.most.{group} }}}}\n"
        lines.append(changed if line.startswith(limit) else line)
    return "".join(lines)


def _add_fixed_replicas(text: str) -> str:
    """Add the number of replicas for installations without scaling; with scaling, KEDA sets the
    number.
    """
    fixed = (
        "{{- if not .Values.scaling.enabled }}\n  replicas: {{ .Values.scaling.replicas }}\n"
        "{{- end }}\n"
    )
    lines, is_deployment = [], False
    for line in text.splitlines(keepends=True):
        lines.append(line)
        is_deployment = line == "kind: Deployment\n" or is_deployment
        if is_deployment and line == "spec:\n":
            lines.append(fixed)
            is_deployment = False
    return "".join(lines)


def _dump(value: object) -> str:
    text: str = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=100)
    return text


if __name__ == "__main__":
    sys.exit(main())
