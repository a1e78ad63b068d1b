"""Writes the bill of materials of the image: `python -m deploy.supply_chain.sbom [FILE]`.

CycloneDX, in JSON: every locked distribution of `requirements/image.txt` with its version, its
package URL and the SHA-256 digests of its files. No network is needed, and the same lock makes the
same file.
"""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from deploy.supply_chain.lock import REQUIREMENTS, ROOT

SPECIFICATION = "1.6"
DEFAULT = ROOT / "dist" / "refdesk.cdx.json"


class SbomError(Exception):
    """The bill of materials cannot be written."""


def write_sbom(path: Path, lock: Path = REQUIREMENTS / "image.txt") -> None:
    """Write and validate the bill of materials of a lock; raises `SbomError`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    command = [
        sys.executable, "-m", "cyclonedx_py", "requirements", str(lock),
        "--pyproject", str(ROOT / "pyproject.toml"), "--mc-type", "application",
        "--spec-version", SPECIFICATION, "--output-format", "JSON", "--output-reproducible",
        "--validate", "--output-file", str(path),
    ]  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603 - our own arguments
    if done.returncode:
        raise SbomError(f"expected a bill of materials of {lock.name}: {done.stderr.strip()}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the bill of materials and report where it is."""
    parser = argparse.ArgumentParser(
        prog="python -m deploy.supply_chain.sbom", description=main.__doc__
    )
    parser.add_argument("file", nargs="?", type=Path, default=DEFAULT)
    chosen = parser.parse_args(arguments)
    write_sbom(chosen.file.resolve())
    sys.stdout.write(f"{chosen.file}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
