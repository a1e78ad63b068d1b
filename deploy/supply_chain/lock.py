"""Locks the dependencies with their hashes: `python -m deploy.supply_chain.lock [--upgrade]`.

`requirements/` has one file for each use, valid for every supported platform and Python version.
`pip install --require-hashes` installs from them. No file specifies a package index. pip uses the
index configured on the machine, and the hashes ensure that the files are the same.
"""

import argparse
import hashlib
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
REQUIREMENTS = ROOT / "requirements"
HEADER = """\
# Written by `make lock` from pyproject.toml; do not edit. {purpose}
# inputs: {fingerprint}
"""
_LOCKED = re.compile(r"(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^ ;\\]+)(?: ; (?P<marker>[^\\]+))?")


@dataclass(frozen=True, slots=True)
class LockFile:
    """A lock file, with the extras and groups in pyproject.toml that it contains."""

    name: str
    purpose: str
    product: bool = True
    extras: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """The file in the repository."""
        return REQUIREMENTS / f"{self.name}.txt"


EXTRAS = tuple(
    tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
)
LOCKS = (
    LockFile("dev", "Everything that `make check` needs.", extras=EXTRAS, groups=("dev",)),
    LockFile("runtime", "The product without extras."),
    LockFile("image", "The product with every extra: the image.", extras=EXTRAS),
    LockFile("build", "What builds the wheel, and pip itself.", product=False, groups=("build",)),
    LockFile(
        "bench",
        "What `make bench` compares with, beside the development environment.",
        extras=EXTRAS,
        groups=("dev", "bench"),
    ),
    LockFile("lock", "What `make lock` resolves with.", product=False, groups=("lock",)),
)
"""The lock files. The first one contains the versions that the others must match."""


class LockError(Exception):
    """The lock cannot be written or read."""


@dataclass(frozen=True, slots=True)
class LockedPackage:
    """A line of a lock, with the SHA-256 digests of the files that it accepts."""

    name: str
    version: str
    marker: str
    digests: tuple[str, ...]


def normalize_name(name: str) -> str:
    """Return the canonical (normalized) form of a distribution's name."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_project() -> dict[str, Any]:
    """Return pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def find_inputs(lock: LockFile, project: Mapping[str, Any]) -> list[str]:
    """Return the requirements in pyproject.toml for which a lock is resolved."""
    inputs: list[str] = list(project["project"]["dependencies"]) if lock.product else []
    for extra in lock.extras:
        inputs += project["project"]["optional-dependencies"][extra]
    for group in lock.groups:
        inputs += project["dependency-groups"][group]
    return inputs


def compute_fingerprint(lock: LockFile, project: Mapping[str, Any]) -> str:
    """Return a digest of all inputs from which a lock is resolved."""
    inputs = [project["project"]["requires-python"], *sorted(find_inputs(lock, project))]
    return hashlib.sha256(json.dumps(inputs).encode()).hexdigest()[:32]


def read_lock(path: Path) -> list[LockedPackage]:
    """Return the packages in a lock; raises `LockError` for a line without a version or hash."""
    packages = []
    text = path.read_text(encoding="utf-8").replace("\\\n", " ")
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        requirement, *hashes = line.split(" --hash=sha256:")
        match = _LOCKED.fullmatch(requirement.strip())
        if match is None or not hashes:
            raise LockError(f"{path.name}: expected name==version with hashes, found {line[:80]!r}")
        digests = tuple(digest.strip() for digest in hashes)
        marker = (match["marker"] or "").strip()
        packages.append(
            LockedPackage(normalize_name(match["name"]), match["version"], marker, digests)
        )
    return packages


def write_lock(lock: LockFile, *, upgrade: bool) -> None:
    """Resolve one lock with uv; raises `LockError` with uv's report."""
    command = [
        sys.executable, "-m", "uv", "pip", "compile", "pyproject.toml",
        "--universal", "--generate-hashes", "--no-emit-index-url", "--no-emit-find-links",
        "--no-header", "--annotation-style", "line", "--quiet",
        "--python-version", "3.11", "--output-file", str(lock.path),
    ]  # fmt: skip
    if not lock.product:
        command.remove("pyproject.toml")
    if lock is not LOCKS[0]:
        command += ["--constraint", str(LOCKS[0].path.relative_to(ROOT))]
    if upgrade:
        command.append("--upgrade")
    command += [word for extra in lock.extras for word in ("--extra", extra)]
    command += [word for group in lock.groups for word in ("--group", group)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603 - our own arguments
    if done.returncode:
        raise LockError(f"{lock.path.name}: {done.stderr.strip()}")
    fingerprint = compute_fingerprint(lock, read_project())
    header = HEADER.format(purpose=lock.purpose, fingerprint=fingerprint)
    lock.path.write_text(header + lock.path.read_text(encoding="utf-8"), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Write every lock into `requirements/`."""
    parser = argparse.ArgumentParser(
        prog="python -m deploy.supply_chain.lock", description=main.__doc__
    )
    parser.add_argument("--upgrade", action="store_true", help="take the newest allowed versions")
    chosen = parser.parse_args(arguments)
    for lock in LOCKS:
        write_lock(lock, upgrade=chosen.upgrade)
    return 0


if __name__ == "__main__":
    sys.exit(main())
