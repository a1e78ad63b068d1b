"""Which redis-server the embedded broker takes."""

from pathlib import Path

import pytest

from broker.embedded.endpoint import find_server


def server_in(folder: Path, version: str) -> Path:
    """A program that prints a version, in a separate folder."""
    folder.mkdir()
    program = folder / "redis-server"
    program.write_text(f"#!/bin/sh\necho 'Redis server v={version} sha=0 bits=64'\n")
    program.chmod(0o755)
    return program


def test_the_newest_server_is_taken_wherever_it_stands_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = server_in(tmp_path / "old", "6.2.14"), server_in(tmp_path / "new", "99.0.1")

    for path in (f"{old.parent}:{new.parent}", f"{new.parent}:{old.parent}"):
        monkeypatch.setenv("PATH", path)

        assert find_server() == new


def test_a_server_that_is_too_old_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = server_in(tmp_path / "old", "5.0.7")
    monkeypatch.setenv("PATH", str(old.parent))

    assert find_server() != old
