"""The chart of Helm is made of the manifests, and refuses values that it does not know."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from deploy.generate.chart import main as write_chart
from deploy.generate.chart import make_chart, make_schema, make_values
from deploy.generate.manifests import FOLDER, GROUPS

CHART = make_chart()
ALL_ON = {
    "scaling": {"enabled": False}, "slack": {"enabled": True}, "telegram": {"enabled": True},
    "alarms": {"enabled": True},
}  # fmt: skip


def test_the_schema_accepts_the_defaults_and_refuses_a_misspelt_value() -> None:
    values = make_values()
    validator = jsonschema_rs.validator_for(make_schema(values))

    assert validator.is_valid(values)
    assert validator.is_valid({**values, "settings": {"SHARDS": 1, "GEN_MODEL": "offline"}})
    assert not validator.is_valid({**values, "gatewy": {"replicas": 3}})
    assert not validator.is_valid({**values, "settings": {"gen_model": "offline"}})
    assert not validator.is_valid({**values, "gateway": {"replicas": 0}})


def test_every_manifest_is_in_the_chart_and_takes_its_image_from_the_values() -> None:
    listed = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())["resources"]
    chart = {name.removeprefix("templates/") for name in CHART}

    assert set(listed) - {"namespace.yaml"} <= chart
    assert not any("image: refdesk:latest" in text for text in CHART.values())
    for group in GROUPS:
        assert f".Values.scaling.most.{group.name} }}}}" in CHART["templates/scaling.yaml"]
        assert make_values()["scaling"]["most"][group.name] == group.most


@pytest.mark.parametrize("values", [{}, ALL_ON], ids=["defaults", "all on"])
def test_helm_lints_and_renders_the_chart(tmp_path: Path, values: dict[str, Any]) -> None:
    helm = shutil.which("helm")
    if helm is None:
        pytest.skip("helm is not installed")
    write_chart([str(tmp_path / "refdesk")])
    (tmp_path / "values.json").write_text(json.dumps(values))
    words = [str(tmp_path / "refdesk"), "--values", str(tmp_path / "values.json")]

    subprocess.run([helm, "lint", "--strict", *words], check=True)
    shown = subprocess.run(
        [helm, "template", "desk", *words], check=True, capture_output=True, text=True
    ).stdout

    made = [item for item in yaml.safe_load_all(shown) if item]
    deployments = {item["metadata"]["name"] for item in made if item["kind"] == "Deployment"}
    assert {f"refdesk-{group.name}" for group in GROUPS} < deployments
    assert ("refdesk-slack" in deployments) is bool(values)
