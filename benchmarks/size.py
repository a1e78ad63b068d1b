"""Measures the start time of `refdesk ask` and the memory of light workers.

`python -m benchmarks.size` prints

- the time of `refdesk ask` on an ingested corpus, from the start of the process to its end, next to
  the time of importing `fastembed` and loading the same embedding model: medians of alternating
  runs;
- the resident memory of workers without search or models, after they have worked on questions.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples" / "sms_platform"
MODEL = ROOT / "knowledge" / "models" / "all-MiniLM-L6-v2-int8"
ROUNDS = 7
QUESTION = "How do I configure SMS routing rules?"
QUESTIONS = 20
LIGHT = (("manager", "command", "augmentation"), ("lang",))
REST = (
    "translation", "essence", "guardrails", "search", "clarification", "response", "quality",
)  # fmt: skip
MOST_RATIO = 2.0
MOST_MEGABYTES = 80.0

LOADING = """
import sys
from fastembed import TextEmbedding
TextEmbedding("sentence-transformers/all-MiniLM-L6-v2", specific_model_path=sys.argv[1])
"""


def main() -> None:
    """Print both tables."""
    with tempfile.TemporaryDirectory(prefix="refdesk-starting-") as folder:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "REFDESK_DATA": folder}
        environment.pop("REDIS_URL", None)
        environment.pop("QDRANT_URL", None)
        run(refdesk("ingest", str(EXAMPLES)), environment)
        print_starting(environment)
        print_memory(environment)


def print_starting(environment: Mapping[str, str]) -> None:
    """Measure the time of a question and of loading the model alone, alternately."""
    load = [sys.executable, "-c", LOADING, str(MODEL)]
    ask = refdesk("ask", QUESTION)
    for command in (load, ask):
        run(command, environment)
    taken = [(run(load, environment), run(ask, environment)) for _ in range(ROUNDS)]
    alone, asked = (statistics.median(column) for column in zip(*taken, strict=True))
    print(f"{'cold start, median of ' + str(ROUNDS):<44}{'seconds':>9}{'ratio':>8}")
    print(f"{'fastembed imported, model loaded':<44}{alone:>9.2f}{1:>8.2f}")
    print(f"{'refdesk ask':<44}{asked:>9.2f}{asked / alone:>8.2f}")
    print(f"{'':<44}{'at most':>9}{MOST_RATIO:>8.2f}\n")


def print_memory(environment: Mapping[str, str]) -> None:
    """Measure the memory of workers that serve a desk together with others, after some
    questions.
    """
    with ExitStack() as stack:
        light = {roles: stack.enter_context(worker(roles, environment)) for roles in LIGHT}
        stack.enter_context(worker(REST, environment))
        for _ in range(QUESTIONS):
            run(refdesk("ask", QUESTION), environment)
        print(f"{f'resident memory after {QUESTIONS} questions':<44}{'MB':>9}")
        for roles, process in light.items():
            print(f"{'worker --role ' + ' '.join(roles):<44}{megabytes(process):>9.1f}")
        print(f"{'at most':<44}{MOST_MEGABYTES:>9.1f}")


def refdesk(*words: str) -> list[str]:
    """Return the command line of `refdesk`."""
    return [sys.executable, "-m", "cli.main", *words]


def run(command: Sequence[str], environment: Mapping[str, str]) -> float:
    """Run a command; return how many seconds it took."""
    started = time.perf_counter()
    subprocess.run(command, env=environment, check=True, capture_output=True)
    return time.perf_counter() - started


@contextmanager
def worker(
    roles: Sequence[str], environment: Mapping[str, str]
) -> Iterator["subprocess.Popen[str]"]:
    """Run a worker of these roles within the context."""
    command = refdesk("worker", "--role", *roles)
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        if process.stdout is None or not process.stdout.readline().startswith("working as"):
            raise RuntimeError(f"the worker of {', '.join(roles)} did not start")
        try:
            yield process
        finally:
            process.terminate()


def megabytes(process: "subprocess.Popen[str]") -> float:
    """Return the resident memory of a process, in units of 1,000,000 bytes."""
    status = Path(f"/proc/{process.pid}/status").read_text("ascii").splitlines()
    resident = next(line for line in status if line.startswith("VmRSS:"))
    return int(resident.split()[1]) * 1024 / 1_000_000


if __name__ == "__main__":
    main()
