"""Prints one table: Refdesk beside others, in one run, each on an empty Redis of its own."""

import json
import subprocess
import sys

from benchmarks.server import private_redis

SYSTEMS = ("refdesk_flow", "faststream_flow")
HEAD = ("system", "questions/s", "alone p50 ms", "alone p99 ms", "processor")


def main() -> int:
    """Measure every system and print the table."""
    print("One question of 4 kB through a manager and eight roles that do nothing; one process.")
    print(f"{HEAD[0]:<18}{HEAD[1]:>13}{HEAD[2]:>14}{HEAD[3]:>14}{HEAD[4]:>11}")
    for system in SYSTEMS:
        figures = _figures(system)
        print(
            f"{system:<18}{figures['questions_a_second']:>13.0f}{figures['alone_p50_ms']:>14.2f}"
            f"{figures['alone_p99_ms']:>14.2f}{figures['processor_share']:>11.2f}",
            flush=True,
        )
    return 0


def _figures(system: str) -> dict[str, float]:
    with private_redis() as url:
        told = subprocess.run(
            [sys.executable, "-m", f"benchmarks.{system}", url],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    figures: dict[str, float] = json.loads(told.splitlines()[-1])
    return figures


if __name__ == "__main__":
    sys.exit(main())
