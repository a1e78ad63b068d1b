"""Audits the locked dependencies: `python -m deploy.supply_chain.audit`.

It checks whether the installed versions are compatible (`pip check`), whether one of them was
yanked (the report that pip wrote during `make install`), and whether the vulnerability service
lists one of the locked versions (`pip-audit`). A finding fails the audit. An unavailable service
does not fail it; the audit reports on one line what it could not check.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deploy.supply_chain.lock import REQUIREMENTS, read_lock

REPORTS = tuple(Path(sys.prefix) / f"{name}.json" for name in ("runtime", "dev"))
LIMIT_SECONDS = 120.0
REQUEST_SECONDS = 10
EXIT_FINDING = 1
AUDITED = ("image", "build")
"""The locks that users install; development tools are not audited because they are not exposed."""


@dataclass(slots=True)
class AuditResult:
    """The findings of an audit, and the checks that could not be run."""

    findings: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)


def find_conflicts(python: str = sys.executable) -> AuditResult:
    """Report installed distributions whose requirements are not met."""
    done = _run([python, "-m", "pip", "check"])
    return AuditResult(done.stdout.splitlines() if done.returncode else [])


def find_yanked(report: Path) -> AuditResult:
    """Report yanked releases among those that pip installed, based on pip's report."""
    try:
        installed = json.loads(report.read_text(encoding="utf-8"))["install"]
    except FileNotFoundError:
        return AuditResult(
            unchecked=[
                f"yanked releases: not checked, {report.name} is missing: `make install` writes it "
                "if it installs with pip, not with uv"
            ]
        )
    yanked = [package["metadata"] for package in installed if package["is_yanked"]]
    return AuditResult([f"{package['name']} {package['version']} was yanked" for package in yanked])


def find_vulnerable(locks: Sequence[Path], *options: str) -> AuditResult:
    """Check every locked version with the vulnerability service; `options` are passed to
    pip-audit.
    """
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "audit.json"
        command = [
            sys.executable, "-m", "pip_audit", "--disable-pip", "--require-hashes",
            "--progress-spinner", "off", "--timeout", str(REQUEST_SECONDS),
            "--format", "json", "--desc", "off", "--output", str(output),
            "--cache-dir", str(Path(folder) / "cache"), *options,
        ]  # fmt: skip
        for lock in locks:
            command += ["--requirement", str(lock)]
        try:
            done = _run(command)
        except subprocess.TimeoutExpired:
            return AuditResult(
                unchecked=[f"vulnerabilities: not finished within {LIMIT_SECONDS:g} s"]
            )
        if not output.exists():
            reason = (done.stderr.strip() or "pip-audit printed nothing").splitlines()[-1]
            return AuditResult(unchecked=[f"vulnerabilities: {reason}"])
        return _read_audit(json.loads(output.read_text(encoding="utf-8")))


def report(results: Sequence[AuditResult], audited: int) -> int:
    """Print the findings and the checks that were not run; return the exit status."""
    findings = [line for result in results for line in result.findings]
    unchecked = [line for result in results for line in result.unchecked]
    for line in unchecked:
        sys.stderr.write(f"audit: not checked: {line}\n")
    for line in findings:
        sys.stderr.write(f"audit: {line}\n")
    sys.stdout.write(f"audit: {audited} locked releases, {len(findings)} findings\n")
    return EXIT_FINDING if findings else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Audit the environment and the locks of users' installations."""
    parser = argparse.ArgumentParser(
        prog="python -m deploy.supply_chain.audit", description=main.__doc__
    )
    parser.parse_args(arguments)
    locks = [REQUIREMENTS / f"{name}.txt" for name in AUDITED]
    results = [find_conflicts(), *map(find_yanked, REPORTS), find_vulnerable(locks)]
    return report(results, sum(len(read_lock(lock)) for lock in locks))


def _read_audit(audit: dict[str, Any]) -> AuditResult:
    result = AuditResult()
    unknown = [package["name"] for package in audit["dependencies"] if "skip_reason" in package]
    if unknown:
        result.unchecked.append(
            f"vulnerabilities: the service has no data about {len(unknown)} of "
            f"{len(audit['dependencies'])} releases, {unknown[0]} among them"
        )
    for package in audit["dependencies"]:
        for flaw in package.get("vulns", ()):
            fixed = ", ".join(flaw["fix_versions"]) or "no release"
            result.findings.append(
                f"{package['name']} {package['version']} has {flaw['id']}, fixed in {fixed}"
            )
    return result


def _run(command: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(  # noqa: S603 - our own arguments
        command, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False
    )


if __name__ == "__main__":
    sys.exit(main())
