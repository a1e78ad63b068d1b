"""Starts processes of a system and sends them requests."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from benchmarks.speed.systems.port import Setting, System


class SilentProcessError(Exception):
    """A process ended or said nothing; it carries the end of what it wrote about itself."""


@dataclass(frozen=True, slots=True)
class ControlledProcess:
    """A process that measures itself."""

    process: "subprocess.Popen[str]"
    journal: IO[str]

    def request(self, name: str, **arguments: object) -> None:
        """Ask for a measurement; several processes may be asked before the first answers."""
        if self.process.stdin is None:
            raise RuntimeError("expected a pipe")
        try:
            self.process.stdin.write(json.dumps([name, arguments]) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise self._silent() from None

    def receive(self) -> Any:
        """Return what it found."""
        if self.process.stdout is None:
            raise RuntimeError("expected a pipe")
        line = self.process.stdout.readline()
        if not line:
            raise self._silent()
        return json.loads(line)

    def _silent(self) -> SilentProcessError:
        self.journal.seek(0)
        return SilentProcessError(self.journal.read()[-2000:])

    def resident_megabytes(self) -> float:
        """Return its resident memory, in units of 1,000,000 bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text("ascii").splitlines()
        resident = next(line for line in status if line.startswith("VmRSS:"))
        return int(resident.split()[1]) * 1024 / 1_000_000


@contextmanager
def processes(
    system: System, setting: Setting, number: int = 1
) -> Iterator[Sequence[ControlledProcess]]:
    """Run processes of the system while inside; they are ready for requests."""
    settings = json.dumps({**asdict(setting), "payload": setting.payload.name})
    command = [sys.executable, "-m", "benchmarks.speed.harness.process", system.module, settings]
    with ExitStack() as stack:
        started = [_start(stack, command) for _ in range(number)]
        for one in started:
            one.receive()
        yield started


def _start(stack: ExitStack, command: Sequence[str]) -> ControlledProcess:
    journal: IO[str] = tempfile.TemporaryFile("w+")  # noqa: SIM115 - the stack closes it
    stack.enter_context(journal)
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=journal, text=True
    )
    stack.callback(_end, process)
    return ControlledProcess(process, journal)


def _end(process: "subprocess.Popen[str]") -> None:
    """Kill it: what it holds is thrown away with its Redis."""
    process.kill()
    process.communicate()
