"""What workers and managers do in scenarios with branches; frames are a word and a path."""

from collections.abc import Callable
from dataclasses import dataclass

from pydantic_core import from_json

from broker.values import (
    LONG_FRAME,
    WATCH,
    BranchSend,
    Bury,
    Delivery,
    Forward,
    FrameSend,
    JournalEntry,
    Retry,
    ReturnResult,
    ScatterBranches,
    Settlement,
)
from envelope.encoding import to_json
from tests.simulation.expected_state import MANAGER, ROLES, SEARCH

PADDING = "-" * LONG_FRAME


@dataclass(frozen=True, slots=True)
class Long:
    """A long frame with one word that changes."""

    word: str

    def encode(self) -> bytes:
        return to_json({"word": self.word, "payload": {"text": PADDING}})

    def delta_from(self, _base: "Long") -> bytes:
        return to_json({"word": self.word, "payload": {}})


def word_of(delivery: Delivery) -> str:
    """Return the word of a frame, long or not."""
    return words_in(delivery.whole())


def words_in(frame: bytes) -> str:
    """Return the words of a frame, long or not."""
    return str(from_json(frame)["word"]) if frame.startswith(b"{") else frame.decode()


def path_of(frame: bytes) -> str:
    """Return the path of the branch that a frame names after its word, or ''."""
    return words_in(frame).partition(" ")[2]


Send = Callable[[str, str], FrameSend]
"""Returns the frame of a role with these words."""


@dataclass(frozen=True, slots=True)
class Branching:
    """How messages branch: `need` of `branches`, `at_once` at the same time, `depth` deep.

    Those that watch are shown the messages behind them, which end their work or do not.
    """

    branches: int
    need: int
    at_once: int
    seconds: float = 60.0
    depth: int = 1
    watches: bool = False
    ends: bool = True


def settle_in_branches(
    branching: Branching, words: str, role: str, kind: str, send: Send
) -> Settlement | None:
    """Return the settlement of an entry with these words; None: the message ends."""
    word, _, path = words.partition(" ")
    if kind != "pass":
        return _rare(kind, words, path, send)
    if role == SEARCH:
        return _work(branching, path, send)
    if word == "ask" or word == "plan":
        return _scatter(branching, path, send)
    if word == "look":
        return Forward((send(SEARCH, f"work {path}"),))
    if not path:
        return None
    return ReturnResult({"words": words}, word != "poison", ROLES)


def _work(branching: Branching, path: str, send: Send) -> Settlement:
    """Work on a branch: it branches again, or its result is there at once or by a manager."""
    if path == WATCH:
        return ReturnResult({"words": path}, branching.ends, ROLES)
    if path.count("/") + 1 < branching.depth:
        return Forward((send(MANAGER, f"plan {path}"),))
    if path.endswith("1"):
        return ReturnResult({"words": path}, True, ROLES, (JournalEntry("agent_run", {}),))
    return Forward((send(MANAGER, f"worked {path}"),))


def _scatter(branching: Branching, path: str, send: Send) -> ScatterBranches:
    stem, gathers = (f"{path}/t", f"gathered {path}") if path else ("t", "gathered")
    branches = []
    for number in range(1, branching.branches + 1):
        sent = send(SEARCH, f"work {stem}{number}")
        branches.append(
            BranchSend(SEARCH, sent.frame, decoded=sent.decoded, path=f"{stem}{number}")
        )
    return ScatterBranches(
        f"{path}#0",
        send(MANAGER, gathers),
        branches,
        need=branching.need,
        at_once=branching.at_once,
        seconds=branching.seconds,
        journal=(JournalEntry("routed", {}),),
        watch=_watch(send) if branching.watches and not path else None,
    )


def _watch(send: Send) -> BranchSend:
    sent = send(MANAGER, f"look {WATCH}")
    return BranchSend(MANAGER, sent.frame, decoded=sent.decoded, path=WATCH)


def _rare(kind: str, words: str, path: str, send: Send) -> Settlement:
    match kind:
        case "retry":
            return Retry(send(SEARCH, words).whole(), "busy", seconds=1.0)
        case "fail":
            return Retry(send(SEARCH, words).whole(), "broken")
        case "bury":
            return Bury("gave_up", "cannot read it", poison_notice=send(MANAGER, f"poison {path}"))
        case _:
            return Bury("gave_up", "cannot read it")
