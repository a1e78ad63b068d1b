"""The data folder is its owner's alone."""

import os
import stat
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from deploy.assembly.knowledge import open_knowledge
from gateway.api_keys import KeyHistory
from knowledge.data_folder import protect_data_folder
from tests.support.app_harness import refdesk, settings_of

PAGE = "# Reset a password\n\nChoose Forgotten in the portal.\n"
OTHERS = 0o077


@pytest.fixture
def generous_umask() -> Iterator[None]:
    """What most systems have: others may read what is created."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def open_to_others(folder: Path) -> list[str]:
    """Return what below a folder somebody else may use, by its permissions alone."""
    return [
        f"{path.relative_to(folder)} {stat.S_IMODE(path.lstat().st_mode):o}"
        for path in (folder, *folder.rglob("*"))
        if not path.is_symlink() and stat.S_IMODE(path.lstat().st_mode) & OTHERS
    ]


@pytest.mark.redis
@pytest.mark.slow
def test_nobody_else_may_read_what_commands_write(tmp_path: Path, generous_umask: None) -> None:
    page = tmp_path / "passwords.md"
    page.write_text(PAGE)
    data = tmp_path / "data"
    settings = {"given": b"", "refdesk_data": str(data)}

    for words in (("ingest", str(page)), ("ask", "How do I reset a password?"), ("keys", "create")):
        ended = refdesk(tmp_path, *words, **settings)  # type: ignore[arg-type] # settings are text
        assert ended.returncode == 0, ended.stderr

    assert (data / "broker").is_dir()
    assert (data / "index").is_dir()
    assert open_to_others(data) == []


def test_a_data_folder_that_others_could_enter_is_closed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    folder.chmod(0o755)

    protect_data_folder(folder)
    protect_data_folder(folder)

    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    output = capsys.readouterr()
    assert (output.out + output.err).count("data_folder_permissions_fixed") == 1


@pytest.mark.redis
@pytest.mark.slow
async def test_a_process_with_another_redis_is_refused_while_the_owner_of_the_index_runs(
    tmp_path: Path, redis_url: str
) -> None:
    (tmp_path / "passwords.md").write_text(PAGE)
    data = tmp_path / "data"
    settings: dict[str, Any] = {"given": b"", "refdesk_data": str(data)}
    ingested = refdesk(tmp_path, "ingest", str(tmp_path / "passwords.md"), **settings)
    assert ingested.returncode == 0, ingested.stderr
    ask = partial(refdesk, tmp_path, "ask", "How do I reset a password?", redis_url=redis_url)

    async with open_knowledge(settings_of(data)):
        refused = ask(**settings)
    answered = ask(**settings)

    assert refused.returncode == 1
    assert f"process {os.getpid()} has already opened the index in {data}" in refused.stderr
    assert "uses the Redis of the data folder (no REDIS_URL)" in refused.stderr
    assert f"but this process uses {redis_url}." in refused.stderr
    assert answered.returncode == 0, answered.stderr


def test_that_keys_were_made_is_remembered_until_somebody_removes_the_mark(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    history = KeyHistory(folder)
    assert not history.has_keys

    history.note()
    history.note()

    assert KeyHistory(folder).has_keys
    assert open_to_others(folder) == []
    (folder / "keys-made").unlink()
    assert not history.has_keys


def test_a_mark_that_cannot_be_written_hinders_nobody_and_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "data").write_text("a file where the folder should be")

    KeyHistory(tmp_path / "data").note()

    output = capsys.readouterr()
    assert "REQUIRE_KEYS" in output.out + output.err
