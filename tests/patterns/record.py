"""Remembers which patterns were measured as they are, so that only new ones are measured again.

`python -m tests.patterns.record` measures the patterns that `record.json` lacks, and writes them.
A line of it holds for one expression, its flags, its methods, the code of the attacks and the
version of Python: what differs in one of them is new.
"""

import json
import sys
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from pathlib import Path

from tests.patterns.collection import PACKAGES, Pattern, find_patterns
from tests.patterns.javascript import find_script_patterns
from tests.patterns.measurement import find_superlinear

FOLDER = Path(__file__).parent
PATH = FOLDER / "record.json"
_MEASURING = ("attack_strings.py", "measurement.py")
_DIGEST_CHARACTERS = 16


def digest(pattern: Pattern) -> str:
    """Return 16 hexadecimal characters that stand for a pattern and for how it is measured."""
    methods = ",".join(sorted(pattern.methods))
    parts = [repr(pattern.key), methods, repr(sys.version_info[:2]), _measuring_code()]
    return sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[
        :_DIGEST_CHARACTERS
    ]


def select_new(patterns: Iterable[Pattern]) -> list[Pattern]:
    """Return the patterns that the record does not hold."""
    recorded = {it for digests in json.loads(PATH.read_text()).values() for it in digests}
    return [pattern for pattern in patterns if digest(pattern) not in recorded]


@cache
def _measuring_code() -> str:
    return sha256(b"".join((FOLDER / name).read_bytes() for name in _MEASURING)).hexdigest()


def _write() -> int:
    results = {package: find_patterns(package) for package in PACKAGES}
    results["widget"] = find_script_patterns("gateway/widget")
    new = select_new(pattern for patterns in results.values() for pattern in patterns)
    findings = find_superlinear(new)
    if findings:
        sys.stderr.write("\n".join(findings) + "\nexpected linear patterns; nothing is written\n")
        return 1
    record = {name: sorted(map(digest, patterns)) for name, patterns in results.items() if patterns}
    PATH.write_text(json.dumps(record, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(_write())
