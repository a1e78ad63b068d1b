"""What a test of the `refdesk` command stands on: a run of it, and what it said."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
CLEAR = "How do I configure SMS routing rules?"
Run = Callable[..., "CommandResult"]


class CommandResult:
    """What a command said, and its exit status."""

    def __init__(self, status: int, out: str, err: str) -> None:
        self.status = status
        self.out = out
        self.err = err

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def one_line(result: CommandResult) -> str:
    """The one line of an error, which is all that is said, without its beginning."""
    assert result.out == ""
    assert result.status == 1
    assert re.fullmatch(r"refdesk: [^\n]+\n", result.err), result.err
    return result.err.removeprefix("refdesk: ").rstrip()


def environment_of(data: Path) -> dict[str, str]:
    """The environment of a command that runs elsewhere, with this data folder."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path, "REFDESK_DATA": str(data)}
