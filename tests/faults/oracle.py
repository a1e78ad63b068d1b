"""Says what was lost, doubled, late or illegal: compares what happened with the flow table.

Pure: it is handed what the processes noted and what Redis still knows, and returns findings. A
`Finding` is a sentence about one message, conversation or key, and the kind of promise it breaks.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from broker.port import JournalEntry
from envelope.outcome import Outcome
from tests.faults.ledger import Noted
from tests.faults.walk import closed_by_the_manager, problems, reply_of

STARTS = 3
LATE_SECONDS = 0.25
SAID_NOTHING = {Outcome.FAILED, Outcome.SUPERSEDED}


@dataclass(frozen=True, slots=True)
class Finding:
    """One broken promise: `lost`, `doubled`, `late`, `illegal`, `overspent` or `left over`."""

    kind: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.sentence}"


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known when everything has ended.

    `journals` and `results` (how often a reply stands on the result list) go by message name,
    `histories` (speaker and text of each turn) and `statistics` (questions counted) by
    conversation, `leftovers` by key; `faulty` are processes that were killed or stopped, `stopped`
    those that went on later.
    """

    ledger: Sequence[Noted]
    journals: Mapping[str, Sequence[JournalEntry]]
    results: Mapping[str, int]
    histories: Mapping[str, Sequence[tuple[str, str]]] = field(default_factory=dict)
    statistics: Mapping[str, int] = field(default_factory=dict)
    leftovers: Mapping[str, int] = field(default_factory=dict)
    faulty: frozenset[int] = frozenset()
    stopped: frozenset[int] = frozenset()

    def lines(self, kind: str) -> Iterator[Noted]:
        """Yield the lines of one kind, in their order."""
        return (line for line in self.ledger if line.kind == kind)

    def forgotten(self) -> set[str]:
        """Return the messages whose words were forgotten: they told their outcome, and are gone."""
        accepted = list(self.lines("accepted"))
        conversations = {
            line["conversation"] for line in accepted if line["text"].startswith("forget")
        }
        names = {line["name"] for line in accepted if line["conversation"] in conversations}
        names |= {line["name"] for line in self.lines("cancelled_at_the_door") if line["forget"]}
        return {name for name in names if not self.journals.get(name)}


def findings(evidence: Evidence) -> list[Finding]:
    """Return every broken promise."""
    return list(
        chain(
            _outcomes(evidence),
            _transitions(evidence),
            _lateness(evidence),
            _starts(evidence),
            _bills(evidence),
            _memories(evidence),
            (
                Finding("left over", f"{count} in {key}")
                for key, count in evidence.leftovers.items()
            ),
        )
    )


def lateness(entries: Sequence[JournalEntry], deadline_seconds: float) -> float:
    """Return by how many seconds a question ended after its deadline; negative when before."""
    return entries[-1].at - entries[0].at - deadline_seconds


def _outcomes(evidence: Evidence) -> Iterator[Finding]:
    """Every accepted message has one outcome: in its journal, on its list, and for its user."""
    told: dict[str, list[Noted]] = defaultdict(list)
    for line in evidence.lines("told"):
        told[line["name"]].append(line)
    forgotten = evidence.forgotten()
    for line in evidence.lines("accepted"):
        name = line["name"]
        answers = told.get(name, [])
        if len(answers) != 1:
            kind = "doubled" if answers else "lost"
            yield Finding(kind, f"{name} was told {len(answers)} outcomes at the door")
        if name in forgotten:
            continue
        finished = [entry for entry in evidence.journals.get(name, ()) if entry.kind == "finished"]
        listed = evidence.results.get(name, 0)
        for where, count in (("its journal", len(finished)), ("the result list", listed)):
            if count != 1:
                yield Finding(
                    "doubled" if count else "lost", f"{name} ended {count} times in {where}"
                )
        if finished and answers and answers[0]["outcome"] != finished[0].fields.get("outcome"):
            yield Finding("illegal", f"{name} was told another outcome than its journal has")


def _transitions(evidence: Evidence) -> Iterator[Finding]:
    forgotten = evidence.forgotten()
    for name, entries in evidence.journals.items():
        if name not in forgotten:
            yield from (Finding(kind, f"{name} {what}") for kind, what in problems(entries))


def _lateness(evidence: Evidence) -> Iterator[Finding]:
    for line in evidence.lines("accepted"):
        entries = evidence.journals.get(line["name"], ())
        if not entries or entries[-1].kind != "finished":
            continue
        late = lateness(entries, line["deadline_seconds"])
        if late > LATE_SECONDS:
            yield Finding("late", f"{line['name']} ended {late:.3f} s after its deadline")


def _starts(evidence: Evidence) -> Iterator[Finding]:
    """One delivery is started once, and an entry three times at most."""
    deliveries = Counter(
        (line["role"], line["entry"], line["count"]) for line in evidence.lines("started")
    )
    for (role, entry, count), starts in deliveries.items():
        if starts > 1:
            yield Finding(
                "doubled", f"delivery {count} of {role} {entry} was started {starts} times"
            )
    entries = Counter((role, entry) for role, entry, _ in deliveries.elements())
    for (role, entry), starts in entries.items():
        if starts > STARTS:
            yield Finding("overspent", f"{role} {entry} was started {starts} times")


def _bills(evidence: Evidence) -> Iterator[Finding]:
    """A call is billed again only when whoever paid it died or stopped before it was stored.

    A process that was stopped with an entry in its hands may begin a call when it goes on, before
    it hears that the entry is not its own any more: that call was in flight at its pause.
    """
    looked: dict[tuple[int, str], int] = {}
    stored: dict[str, int] = {}
    billed: dict[str, list[int]] = defaultdict(list)
    for place, line in enumerate(evidence.ledger):
        if line.kind == "looked":
            looked[line.pid, line["call"]] = place
        elif line.kind == "stored":
            stored.setdefault(line["call"], place)
        elif line.kind == "billed":
            call = line["call"]
            billed[call].append(line.pid)
            late = looked.get((line.pid, call), place) > stored.get(call, place)
            if late and line.pid not in evidence.stopped:
                yield Finding("overspent", f"{call} was billed after its answer was stored")
    excused = evidence.faulty | {line.pid for line in evidence.lines("lost")}
    for call, pids in billed.items():
        healthy = [pid for pid in pids if pid not in excused]
        if len(healthy) > 1:
            yield Finding("overspent", f"{call} was billed {len(healthy)} times without a fault")


def _memories(evidence: Evidence) -> Iterator[Finding]:
    """A conversation remembers what was said in it, once and in order, and nothing else."""
    # Whoever forgets a message that has its outcome takes away what the journal said of it.
    unknown = {
        line["conversation"]
        for line in evidence.lines("cancelled_at_the_door")
        if line["forget"] and not line["ended"]
    }
    expected, questions = _expected_histories(evidence), _questions(evidence)
    for conversation, turns in expected.items():
        if conversation in unknown:
            continue
        found = [(who, _sorted(text)) for who, text in evidence.histories.get(conversation, ())]
        if found != turns:
            kind = "doubled" if len(found) > len(turns) else "lost"
            told = (
                f"{conversation} remembers {len(found)} turns of {len(turns)}: {found} for {turns}"
            )
            yield Finding(kind, told)
        counted = evidence.statistics.get(conversation, 0)
        if counted != questions[conversation]:
            yield Finding("illegal", f"{conversation} counts {counted} questions")


def _expected_histories(evidence: Evidence) -> dict[str, list[tuple[str, str]]]:
    expected: dict[str, list[tuple[str, str]]] = defaultdict(list)
    asked = _asked(evidence)
    for conversation, name in _in_order_of_their_ends(evidence):
        reply = reply_of(evidence.journals[name])
        if _forgets(evidence, name):
            expected[conversation] = []
        elif reply.get("outcome") not in SAID_NOTHING:
            expected[conversation] += [
                ("user", _sorted("\n".join(asked[name]))),
                ("assistant", _sorted(str(reply["text"]))),
            ]
    return expected


def _questions(evidence: Evidence) -> Counter[str]:
    """Return how many questions each conversation counts."""
    counts: Counter[str] = Counter()
    for conversation, name in _in_order_of_their_ends(evidence):
        counts[conversation] = 0 if _forgets(evidence, name) else counts[conversation] + 1
    return counts


def _forgets(evidence: Evidence, name: str) -> bool:
    return name.startswith("forget") and closed_by_the_manager(evidence.journals[name])


def _asked(evidence: Evidence) -> dict[str, list[str]]:
    """Return the texts of each message: its own, and of those that were merged into it."""
    texts: dict[str, list[str]] = defaultdict(list)
    for line in evidence.lines("accepted"):
        texts[line["merged_into"] or line["name"]].append(line["text"])
    return texts


def _sorted(text: str) -> str:
    """Messages that were merged side by side may have come in any order."""
    return "\n".join(sorted(text.splitlines()))


def _in_order_of_their_ends(evidence: Evidence) -> Iterable[tuple[str, str]]:
    """Return conversation and name of what changed a memory, in the order of the ends."""
    accepted = {line["name"]: line["conversation"] for line in evidence.lines("accepted")}
    ended = sorted(
        (entries[-1].at, entries[0].at, accepted[name], name)
        for name, entries in evidence.journals.items()
        if name in accepted
        and not name.startswith("note")
        and closed_by_the_manager(entries)
        and entries[-1].kind == "finished"
    )
    forgot: dict[str, float] = {}
    for end, start, conversation, name in ended:
        # What was asked before a conversation was forgotten is not remembered by it any more.
        if start > forgot.get(conversation, 0.0):
            yield conversation, name
        if name.startswith("forget"):
            forgot[conversation] = end
