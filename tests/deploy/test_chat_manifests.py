"""What is generated for the chat channels keeps what operators decided."""

from pathlib import Path

import pytest

from cli.main import VERBS
from deploy.generate.manifests import COMPOSE, FOLDER, chat_pages, write_chat_services
from gateway.chat_channels import CHAT_CHANNELS

NAMES = [spec.name for spec in CHAT_CHANNELS]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("kustomization.yaml", "secret.example.yaml", "network.yaml"):
        (tmp_path / name).write_text((FOLDER / name).read_text())
    return tmp_path


def test_a_channel_that_is_switched_on_stays_on(folder: Path) -> None:
    file = folder / "kustomization.yaml"
    file.write_text(file.read_text().replace("  # - slack.yaml\n", "  - slack.yaml\n"))

    assert chat_pages(folder)[file] == file.read_text()
    assert "  - slack.yaml\n" in file.read_text()
    assert "  # - telegram.yaml\n" in file.read_text()


def test_a_component_that_was_let_out_by_hand_stays_let_out(folder: Path) -> None:
    file = folder / "network.yaml"
    file.write_text(file.read_text().replace("[models, search,", "[models, search, proxy,"))

    assert "proxy" in file.read_text()
    assert chat_pages(folder)[file] == file.read_text()


@pytest.mark.parametrize("name", ["kustomization.yaml", "secret.example.yaml", "network.yaml"])
def test_a_file_without_its_marks_is_refused(folder: Path, name: str) -> None:
    (folder / name).write_text("kind: Nothing\n")

    with pytest.raises(ValueError, match="expected one"):
        chat_pages(folder)


def test_every_chat_channel_is_a_verb_and_a_service() -> None:
    compose = COMPOSE.read_text()

    assert set(NAMES) <= set(VERBS)
    assert write_chat_services(compose) == compose
    assert all(f"\n  {name}:\n" in compose for name in NAMES)
