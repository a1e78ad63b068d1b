"""One settlement of each kind and form, as fixed values for the golden bytes."""

from dataclasses import dataclass
from typing import Any

from broker.settlement import BrokerLimits, ScriptCall, SettleBatch
from broker.transport.scripts import LuaScript
from broker.values import (
    LONG_FRAME,
    BaseFrame,
    BranchSend,
    Bury,
    ConsumerDemand,
    Death,
    Delivery,
    Finish,
    Forward,
    FrameSend,
    JournalEntry,
    Retry,
    ReturnResult,
    ScatterBranches,
    Settlement,
)
from envelope.memory_access import Append, Delete, Increment, SetFields
from envelope.outcome import Outcome
from envelope.question import Question

ASKED = Question(tenant="acme", assistant="desk", conversation_id="c 1", message_id="m/1")
LIMITS = BrokerLimits(
    ttl_ms=86_400_000,
    dead_letters=1000,
    attempts=3,
    backoff_ms=500,
    longest_backoff_ms=30_000,
    dead_letter_ttl_ms=604_800_000,
)
WANTS = (ConsumerDemand("search", "w2", 2), ConsumerDemand("quality", "w3", 1))
NOTES = (JournalEntry("routed", {"to": "search"}), JournalEntry("wrote", {"ü": 1.5}))
FORGOTTEN = (("record-1", "journal-1", "results-1"), ("record-2", "journal-2", "record-2"))
REMEMBERED = (
    Append(key="rd:{3}:mem:a", values=("one", "zwei ü"), keep=10, ttl_seconds=60),
    SetFields(key="rd:{3}:mem:b", fields={"f": "v", "long": "x" * 70}, ttl_seconds=61),
    Increment(key="rd:{3}:mem:c", fields={"n": 1, "s": 1.5}, ttl_seconds=62),
    Delete(key="rd:{3}:mem:d"),
)


@dataclass(frozen=True)
class FixedFrame:
    """Encodes to fixed bytes, whatever the envelope's schema is."""

    text: str

    def encode(self) -> bytes:
        return self.text.encode() * LONG_FRAME

    def delta_from(self, base: Any) -> bytes | None:
        return f"{base.text}->{self.text}".encode()


def delivery(**changes: object) -> Delivery:
    """Return an entry that was taken."""
    taken = Delivery(
        entry_id="1700000000000-7",
        role="manager",
        shard=3,
        consumer="w1",
        count=2,
        question=ASKED,
        frame=b"frame",
        remaining_seconds=9.0,
        failures=1,
        starts=2,
    )
    for name, value in changes.items():
        setattr(taken, name, value)
    return taken


def examples() -> dict[str, list[tuple[Delivery, Settlement]]]:
    """Return batches by name; each is one call."""
    notice = FrameSend("manager", b"notice")
    deaths = (Death("w8", 1.5), Death("w9", 2.25))
    whole: Any = FixedFrame("a")
    changed: Any = FixedFrame("b")
    base = BaseFrame("submitted", whole, len(whole.encode()))
    scatter = ScatterBranches(
        "#0",
        FrameSend("manager", b"goes on"),
        (BranchSend("search", b"1", path="t1"), BranchSend("quality", b"2", path="t2")),
        need=1,
        at_once=1,
        seconds=2.5,
        journal=NOTES[:1],
    )
    returned = ReturnResult({"text": "ü"}, is_good=True, roles=("manager", "search"))
    return {
        "scatter": [(delivery(), scatter)],
        "return of a result": [(delivery(branch="t1"), returned)],
        "forward in a branch": [
            (delivery(branch="t1"), Forward((FrameSend("search", decoded=changed),)))
        ],
        "retry in a branch": [(delivery(branch="t1", failures=0), Retry(b"again", "away"))],
        "bury in a branch": [(delivery(branch="t1"), Bury("undecodable", "no"))],
        "forward": [(delivery(), Forward((FrameSend("search", b"next"),), NOTES))],
        "forward with a last resort": [
            (delivery(), Forward((), last_resort={"outcome": "answered", "text": "so far"}))
        ],
        "forward of several": [
            (delivery(), Forward((FrameSend("search", b"1"), FrameSend("quality", b"2"))))
        ],
        "forward that keeps its frame": [
            (delivery(), Forward((FrameSend("search", decoded=changed),)))
        ],
        "forward of a part": [
            (delivery(base_frame=base), Forward((FrameSend("search", decoded=changed),)))
        ],
        "retry": [(delivery(failures=0), Retry(b"again", "the model was away", journal=NOTES[:1]))],
        "retry after a time": [(delivery(), Retry(b"again", "limited", seconds=2.5))],
        "retry that is spent": [(delivery(failures=2), Retry(b"again", "always fails"))],
        "finish": [
            (
                delivery(result_list="chat"),
                Finish(Outcome.ANSWERED, {"outcome": "answered"}, NOTES, REMEMBERED),
            )
        ],
        "finish that forgets": [
            (delivery(), Finish(Outcome.ANSWERED, {"outcome": "answered"}, forget="history"))
        ],
        "bury": [(delivery(result_list="chat"), Bury("failed", "ValueError: no"))],
        "bury with a notice": [
            (delivery(), Bury("poison", "it died", notice, NOTES[:1], deaths=deaths))
        ],
        "a mixed batch": [
            (delivery(), Forward((FrameSend("search", b"next"),))),
            (delivery(entry_id="2-0"), Finish(Outcome.FAILED, {"outcome": "failed"})),
            (delivery(entry_id="3-0"), Retry(b"again", "away")),
        ],
    }


def pack(batch: list[tuple[Delivery, Settlement]]) -> tuple[LuaScript, ScriptCall]:
    """Return the script and the call that settle a batch."""
    packed = SettleBatch(3, LIMITS, jitter=lambda: 0.5, wants=WANTS)
    for taken, settlement in batch:
        forgets = FORGOTTEN if isinstance(settlement, Finish) and settlement.forget else ()
        packed.add(taken, settlement, forgets)
    return packed.script, packed.call(("manager", "search", "quality"))
