"""`refdesk serve` as a separate process, and `refdesk keys`."""

import json
import signal
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from typing import Any

import httpx
import pytest
from redis import Redis

from cli.commands.serve import why_keys
from tests.support.app_harness import command, environment, refdesk

PAGE = "# Reset a password\n\nChoose Forgotten in the portal, and wait for the letter.\n"

pytestmark = [pytest.mark.redis, pytest.mark.slow, pytest.mark.timeout(180)]


@contextmanager
def serving(data: Path, *words: str, **settings: str) -> Iterator[tuple[str, list[str]]]:
    """Have `refdesk serve` while inside; yield its address and what it said."""
    process = Popen(
        command("serve", "--port", "0", *words),
        cwd=data,
        env=environment(data, **settings),
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        said = [process.stdout.readline(), process.stdout.readline()]
        yield said[0].split(";")[0].split()[-1], said
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0
    finally:
        process.kill()
        process.communicate()


def test_serve_answers_without_a_key_until_there_is_one(tmp_path: Path) -> None:
    (tmp_path / "passwords.md").write_text(PAGE)
    data = tmp_path / "d"
    data.mkdir()
    question = {"text": "How do I reset a password?"}
    path = "/v1/conversations/c1/messages"
    assert refdesk(data, "ingest", str(tmp_path / "passwords.md")).returncode == 0

    with serving(data) as (url, said), httpx.Client(base_url=url, timeout=None) as client:
        first = client.post(path, json=question)
        source = first.json()["sources"][0]
        read = client.get(source["link"])
        made = refdesk(data, "keys", "create", "--json", "--note", "shop")
        key = json.loads(made.stdout)
        without = client.post(path, json=question)
        headers = {"Authorization": f"Bearer {key['token']}"}
        with_key = client.get("/v1/models", headers=headers)
        listed = json.loads(refdesk(data, "keys", "list", "--json").stdout)
        revoked = refdesk(data, "keys", "revoke", "--json", key["id"])
        after = client.get("/v1/models", headers=headers)
        with serving(data, "--gateway-only") as (other, _):
            elsewhere = httpx.get(f"{other}/readyz", timeout=None)
        closed = client.get(source["link"])

    assert "no key is required" in said[1]
    assert first.json()["outcome"] == "answered"
    assert read.status_code == 200
    assert f'id="{source["anchor"]}"' in read.text
    assert "Forgotten" in read.text
    assert closed.status_code == 404
    assert without.status_code == 401
    assert [model["id"] for model in with_key.json()["data"]] == ["default"]
    assert [(item["id"], item["note"], item["state"]) for item in listed] == [
        (key["id"], "shop", "good")
    ]
    assert "token" not in listed[0]
    assert "digest" not in listed[0]
    assert (revoked.returncode, after.status_code) == (0, 401)
    ended = json.loads(revoked.stdout)
    assert (ended["id"], ended["state"]) == (key["id"], "revoked")
    assert not {"token", "digest"} & ended.keys()
    assert elsewhere.status_code == 200


def test_a_server_that_ever_had_a_key_never_answers_without_one(tmp_path: Path) -> None:
    with serving(tmp_path, "--gateway-only") as (url, _):
        open_ = httpx.get(f"{url}/v1/models", timeout=None)
        assert refdesk(tmp_path, "keys", "create").returncode == 0
        forget_everything(tmp_path)
        without = httpx.get(f"{url}/v1/models", timeout=None)
    with serving(tmp_path, "--gateway-only") as (url, said):
        again = httpx.get(f"{url}/v1/models", timeout=None)

    assert [open_.status_code, without.status_code, again.status_code] == [200, 401, 401]
    assert "Redis has lost all" in said[1]


def test_a_server_that_found_keys_at_its_start_remembers_them(tmp_path: Path) -> None:
    assert refdesk(tmp_path, "keys", "create").returncode == 0
    (tmp_path / "keys-made").unlink()

    with serving(tmp_path, "--gateway-only") as (url, _):
        forget_everything(tmp_path)
        answer = httpx.get(f"{url}/v1/models", timeout=None)

    assert answer.status_code == 401
    assert (tmp_path / "keys-made").stat().st_mode & 0o777 == 0o600


def test_a_server_that_others_reach_answers_nobody_without_a_key(tmp_path: Path) -> None:
    with serving(tmp_path, "--gateway-only", require_keys="true") as (url, said):
        answer = httpx.get(f"{url}/v1/models", timeout=None)

    assert answer.status_code == 401
    assert "refdesk keys create" in answer.json()["error"]["message"]
    assert "every request requires a key (REQUIRE_KEYS is set), and no key exists" in said[1]


@pytest.mark.parametrize(
    ("settings", "host", "reason"),
    [
        ({}, "127.0.0.1", ""),
        ({}, "::1", ""),
        ({}, "localhost", ""),
        ({}, "0.0.0.0", "other machines can connect to this address"),  # noqa: S104 - a name
        ({"require_keys": True}, "localhost", "REQUIRE_KEYS is set"),
        ({"public_url": "https://desk.acme.test"}, "localhost", "PUBLIC_URL is set, so other"),
        ({"trusted_proxies": ["127.0.0.1"]}, "localhost", "TRUSTED_PROXIES is set, so other"),
    ],
)
def test_a_key_is_needed_where_others_can_reach_the_server(
    settings: dict[str, Any], host: str, reason: str
) -> None:
    nothing: dict[str, Any] = {"require_keys": False, "public_url": None, "trusted_proxies": ()}

    result = why_keys(host, **nothing | settings)

    assert result.startswith(reason) if reason else result == ""


def forget_everything(data: Path) -> None:
    """Empty the Redis of a data folder, as an accident does."""
    path = data / "broker" / (data / "broker" / "socket").read_text()
    with closing(Redis(unix_socket_path=str(path))) as client:
        for key in client.scan_iter():  # the desk's own server has no FLUSHALL
            client.delete(key)


def test_a_desk_alone_keeps_the_deadline_of_what_it_accepted(tmp_path: Path) -> None:
    settings = {"deadline_seconds": "2", "agent_timeout_seconds": "1"}
    with serving(tmp_path, "--gateway-only", **settings) as (url, _):
        client = httpx.Client(base_url=url, timeout=None)
        sent = {"text": "Wie setze ich mein Passwort zurück?", "language": "de"}

        answer = client.post("/v1/conversations/c1/messages", json=sent)
        [message] = client.get("/v1/conversations/c1").json()["messages"]
        client.close()

    assert answer.json()["outcome"] == "failed"
    assert answer.json()["text"].startswith("Entschuldigung")
    assert (message["status"], message["answer"]) == ("ended", answer.json())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("create", "--public"), "a public key needs the origins"),
        (("create", "--public", "--origin", "acme.com/x"), "write https://acme.com"),
        (("create", "--public", "--origin", "https://Acme.com/"), "write https://acme.com"),
        (("create", "--public", "--origin", "https://acme.com,*"), "is not an origin"),
        (("create", "--origin", "https://acme.com"), "only public keys have origins"),
        (("create", "--tenant", "a/b"), "tenant"),
        (("create", "--per-minute", "0"), "greater than or equal to 1"),
        (("revoke", "0123456789ab"), "the key '0123456789ab' does not exist"),
    ],
)
def test_a_key_that_cannot_be_is_refused_in_one_line(
    tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    ended = refdesk(tmp_path, "keys", *words)

    assert ended.returncode == 1
    assert message in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_websites_of_a_key_add_up_however_they_are_given(tmp_path: Path) -> None:
    words = ("--origin", "https://a.test", "--origin", "https://b.test,http://localhost:3000")
    repeated = ("--origin", "https://a.test", "https://d.test", "--scope", "ask", "--scope", "read")

    made = refdesk(tmp_path, "keys", "create", "--json", "--public", *words, *repeated)

    key = json.loads(made.stdout)
    assert key["origins"] == [
        "https://a.test",
        "https://b.test",
        "http://localhost:3000",
        "https://d.test",
    ]
    assert key["scopes"] == ["ask", "read"]


def test_a_port_that_is_taken_is_reported_at_once(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]

        ended = refdesk(tmp_path, "serve", "--gateway-only", "--port", str(port))

    assert ended.returncode == 1
    assert f"cannot listen on 127.0.0.1:{port}" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
