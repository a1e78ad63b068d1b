"""Clients that others publish ask `refdesk serve` as they are; `make clients` installs them."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.app_harness import ROOT, command, environment, refdesk
from tests.support.waiting import PATIENCE_SECONDS

HERE = Path(__file__).parent
CLIENTS = ROOT / ".clients"
PROGRAMS = CLIENTS / "node_modules" / ".bin"
PAGE = "# Reset a password\n\nChoose Forgotten in the portal, and wait for the letter.\n"
QUESTION = "How do I reset a password?"
SAID = "Choose Forgotten in the portal"
NEEDS_A_TEST_SERVER = re.compile(
    "(tools-call|resources-read|resources-templates|elicitation|prompts-get)-?.*"
)
"""Scenarios that call tools, resources and prompts of the suite's own server."""
NOT_OFFERED = {
    "logging-set-level", "completion-complete", "prompts-list", "resources-subscribe",
    "resources-unsubscribe",
}  # fmt: skip
"""Scenarios about optional capabilities that the desk does not declare."""

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not CLIENTS.exists(), reason="the clients are missing: make clients"),
]


@dataclass(frozen=True, slots=True)
class ServedDesk:
    """The address of a desk, and a key; empty if it needs none."""

    url: str
    key: str = ""


@contextmanager
def serve(folder: Path, *, has_key: bool) -> Iterator[ServedDesk]:
    page = folder / "passwords.md"
    page.write_text(PAGE)
    assert refdesk(folder, "ingest", str(page)).returncode == 0
    made = refdesk(folder, "keys", "create", "--json").stdout if has_key else ""
    process = subprocess.Popen(
        command("serve", "--port", "0"),
        cwd=folder,
        env=environment(folder, domain_name="The portal", domain_scope="passwords"),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        results = re.search(r"http://\S+:\d+", process.stdout.readline())
        assert results is not None
        yield ServedDesk(results[0], json.loads(made)["token"] if made else "")
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_SECONDS)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedDesk]:
    with serve(tmp_path_factory.mktemp("desk"), has_key=True) as served:
        yield served


@pytest.fixture(scope="module")
def open_desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedDesk]:
    """A desk that needs no key: the conformance suite cannot send one."""
    with serve(tmp_path_factory.mktemp("open"), has_key=False) as served:
        yield served


def run(*words: str | Path) -> "subprocess.CompletedProcess[str]":
    path = os.pathsep.join((str(PROGRAMS), os.environ["PATH"]))
    return subprocess.run(
        list(map(str, words)),
        cwd=CLIENTS,
        env={**os.environ, "PATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def read(*words: str | Path) -> Any:
    """Return the JSON that a client printed."""
    ended = run(*words)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def test_openais_client_for_node_chats_streams_and_understands_refusals(
    desk: ServedDesk, tmp_path: Path
) -> None:
    # Node looks for packages beside the program.
    program = CLIENTS / "openai_client.mjs"
    shutil.copy(HERE / program.name, program)

    result = read(PROGRAMS / "node", program, f"{desk.url}/v1", desk.key, QUESTION)

    assert result["models"] == ["default"]
    assert SAID in result["text"]
    assert result["text"] == result["streamed"] == result["collected"]
    assert result["tools"].startswith("400")
    assert "does not call tools of the client" in result["tools"]
    assert result["key"].startswith("401")
    assert "refdesk keys list" in result["key"]


def test_langchains_class_for_openai_chats_streams_and_understands_refusals(
    desk: ServedDesk,
) -> None:
    program = HERE / "langchain_client.py"
    result = read(CLIENTS / "python/bin/python", program, f"{desk.url}/v1", desk.key, QUESTION)

    assert SAID in result["text"]
    assert [result["text"]] * 2 == result["batched"]
    assert result["text"] == result["streamed"]
    assert "does not call tools of the client" in result["tools"]
    assert result["key"].startswith("401")
    assert result["usage"]["total_tokens"] == 0


def test_llama_indexs_class_for_such_servers_chats_completes_and_streams(
    desk: ServedDesk,
) -> None:
    program = HERE / "llama_index_client.py"
    result = read(CLIENTS / "python/bin/python", program, f"{desk.url}/v1", desk.key, QUESTION)

    assert SAID in result["text"]
    assert result["text"] == result["completed"] == result["streamed"]
    assert result["key"].startswith("401")


def inspect(desk: ServedDesk, method: str, *words: str) -> Any:
    header = f"Authorization: Bearer {desk.key}"
    address = (f"{desk.url}/mcp", "--transport", "http", "--header", header)
    return read(PROGRAMS / "mcp-inspector", "--cli", *address, "--method", method, *words)


def test_the_mcp_inspector_lists_and_calls_the_tools_with_a_key(desk: ServedDesk) -> None:
    listed = inspect(desk, "tools/list")["tools"]
    asked = ("--tool-name", "ask", "--tool-arg", f"question={QUESTION}")
    answer = inspect(desk, "tools/call", *asked)["structuredContent"]
    [document] = inspect(desk, "resources/list")["resources"]
    content = inspect(desk, "resources/read", "--uri", document["uri"])["contents"]

    assert {item["name"] for item in listed} == {"ask", "search", "fetch"}
    assert answer["outcome"] == "answered"
    assert SAID in answer["text"]
    assert SAID in content[0]["text"]


def test_the_mcp_inspector_says_that_a_key_is_needed(desk: ServedDesk) -> None:
    words = ("--transport", "http", "--method", "tools/list")
    ended = run(PROGRAMS / "mcp-inspector", "--cli", f"{desk.url}/mcp", *words)

    assert ended.returncode != 0
    assert "auth_required" in f"{ended.stdout}{ended.stderr}"


def test_the_mcp_conformance_suite_passes_but_for_what_the_desk_does_not_offer(
    open_desk: ServedDesk, tmp_path: Path
) -> None:
    ended = run(
        PROGRAMS / "conformance", "server", "--url", f"{open_desk.url}/mcp", "-o", tmp_path
    )  # fmt: skip

    results = dict(
        re.findall(r"^[^\w\s] ([\w-]+): \d+ passed, (\d+) failed", ended.stdout, re.MULTILINE)
    )
    own = {
        name: count
        for name, count in results.items()
        if name not in NOT_OFFERED and NEEDS_A_TEST_SERVER.fullmatch(name) is None
    }
    assert {"server-initialize", "ping", "tools-list", "resources-list"} <= set(own)
    assert "dns-rebinding-protection" in own
    assert set(own.values()) == {"0"}
