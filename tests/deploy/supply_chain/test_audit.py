"""The audit fails on what it finds, and says what it could not ask."""

import json
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from deploy.supply_chain.audit import (
    AuditResult,
    find_conflicts,
    find_vulnerable,
    find_yanked,
    report,
)

pytestmark = pytest.mark.slow

FLAW = {
    "id": "PYSEC-2026-1",
    "aliases": [],
    "summary": "reads what it should not",
    "affected": [
        {
            "package": {"name": "leaky", "ecosystem": "PyPI"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "1.2"}]}],
            "versions": ["1.1"],
        }
    ],
}


class VulnerabilityService(BaseHTTPRequestHandler):
    """Answers as OSV does: one distribution has a flaw."""

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        asked = json.loads(self.rfile.read(length))
        answer = json.dumps({"vulns": [FLAW]} if asked["package"]["name"] == "leaky" else {})
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(answer.encode())

    def log_message(self, *_: object) -> None:
        """Write nothing."""


@pytest.fixture
def service() -> Iterator[tuple[str, ...]]:
    """The options that let pip-audit ask a server of this machine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), VulnerabilityService)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield options(server.server_address[1])
    server.shutdown()
    thread.join()
    server.server_close()


def options(port: int) -> tuple[str, ...]:
    return ("--vulnerability-service", "osv", "--osv-url", f"http://127.0.0.1:{port}/v1/query")


def lock_of(folder: Path, *packages: str) -> Path:
    path = folder / "lock.txt"
    path.write_text("".join(f"{package} --hash=sha256:{'0' * 64}\n" for package in packages))
    return path


def test_a_locked_release_with_a_known_flaw_is_a_finding(
    tmp_path: Path, service: tuple[str, ...]
) -> None:
    lock = lock_of(tmp_path, "leaky==1.1", "sound==2.0")

    result = find_vulnerable([lock], *service)

    assert result == AuditResult(["leaky 1.1 has PYSEC-2026-1, fixed in 1.2"])


def test_a_service_that_does_not_answer_is_named_and_fails_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = find_vulnerable([lock_of(tmp_path, "sound==2.0")], *options(9))

    assert result.findings == []
    assert len(result.unchecked) == 1
    assert result.unchecked[0].startswith("vulnerabilities: ")
    assert report([result], 1) == 0
    assert "audit: not checked: vulnerabilities: " in capsys.readouterr().err


def wheel(folder: Path, name: str) -> Path:
    """A distribution with nothing in it."""
    path = folder / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


def test_a_yanked_release_that_pip_installs_is_a_finding(tmp_path: Path) -> None:
    lock = tmp_path / "lock.txt"
    for name, mark in (("withdrawn", ' data-yanked="broken"'), ("kept", "")):
        folder = tmp_path / "simple" / name
        folder.mkdir(parents=True)
        made = wheel(folder, name)
        (folder / "index.html").write_text(
            f'<!DOCTYPE html><a href="{made.name}"{mark}>{made.name}</a>'
        )
        with lock.open("a") as lines:
            lines.write(f"{name}==1.0 --hash=sha256:{sha256(made.read_bytes()).hexdigest()}\n")

    subprocess.run(
        [
            sys.executable, "-m", "pip", "install", "--isolated", "--quiet", "--require-hashes",
            "--index-url", (tmp_path / "simple").as_uri(), "--requirement", lock,
            "--target", tmp_path / "target", "--report", tmp_path / "report.json",
        ],
        check=True, capture_output=True,
    )  # fmt: skip

    assert find_yanked(tmp_path / "report.json").findings == ["withdrawn 1.0 was yanked"]


def test_an_environment_that_pip_left_no_report_in_is_named(tmp_path: Path) -> None:
    result = find_yanked(tmp_path / "dev.json")

    assert result.unchecked == [
        "yanked releases: not checked, dev.json is missing: "
        "`make install` writes it if it installs with pip, not with uv"
    ]


def test_the_installed_packages_are_compatible() -> None:
    assert find_conflicts() == AuditResult()


def test_a_finding_fails_the_audit(capsys: pytest.CaptureFixture[str]) -> None:
    assert report([AuditResult(["leaky 1.1 was yanked"])], 3) == 1
    assert "audit: leaky 1.1 was yanked\n" in capsys.readouterr().err
