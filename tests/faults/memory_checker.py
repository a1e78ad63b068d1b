"""Compares what conversations remember with what was said in them."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from envelope.outcome import Outcome
from tests.faults.finding import Evidence, Finding
from tests.faults.journal_checker import is_closed_by_manager, reply_of
from tests.faults.scripted_agents import KEEPS_TURNS

SAID_NOTHING = {Outcome.FAILED, Outcome.SUPERSEDED}


def memory_findings(evidence: Evidence) -> Iterator[Finding]:
    """A conversation remembers what was said in it, once and in order, and nothing else."""
    # Whoever forgets a message that has its outcome takes away what the journal said of it.
    unknown = {
        line["conversation"]
        for line in evidence.lines("cancelled_by_client")
        if line["forget"] and not line["ended"]
    } | _forgotten_meanwhile(evidence)
    expected, questions = _expect_histories(evidence), _questions(evidence)
    for conversation, turns in expected.items():
        if conversation in unknown:
            continue
        turns = turns[-KEEPS_TURNS:]
        found = [(who, _sort_lines(text)) for who, text in evidence.histories.get(conversation, ())]
        if found != turns:
            kind = "doubled" if len(found) > len(turns) else "lost"
            problem = f"remembers {found}, where {turns} were said"
            yield Finding(kind, "memory", conversation, problem)
        counted = evidence.statistics.get(conversation, 0)
        if counted != questions[conversation]:
            problem = f"counts {counted} questions, where {questions[conversation]} ended"
            yield Finding("illegal", "memory", conversation, problem)


def _expect_histories(evidence: Evidence) -> dict[str, list[tuple[str, str]]]:
    expected: dict[str, list[tuple[str, str]]] = defaultdict(list)
    asked = _find_asked(evidence)
    for conversation, name in _in_order_of_their_ends(evidence):
        reply = reply_of(evidence.journals[name])
        if _forgets(evidence, name):
            expected[conversation] = []
        elif reply.get("outcome") not in SAID_NOTHING:
            expected[conversation] += [
                ("user", _sort_lines("\n".join(asked[name]))),
                ("assistant", _sort_lines(str(reply["text"]))),
            ]
    return expected


def _questions(evidence: Evidence) -> Counter[str]:
    """Return how many questions each conversation counts."""
    counts: Counter[str] = Counter()
    for conversation, name in _in_order_of_their_ends(evidence):
        counts[conversation] = 0 if _forgets(evidence, name) else counts[conversation] + 1
    return counts


def _forgets(evidence: Evidence, name: str) -> bool:
    return name.startswith("forget") and is_closed_by_manager(evidence.journals[name])


def _find_asked(evidence: Evidence) -> dict[str, list[str]]:
    """Return the texts of each message: its own, and of those that were merged into it."""
    texts: dict[str, list[str]] = defaultdict(list)
    for line in evidence.lines("accepted"):
        texts[line["merged_into"] or line["name"]].append(line["text"])
    return texts


def _sort_lines(text: str) -> str:
    """Messages that were merged side by side may have come in any order."""
    return "\n".join(sorted(text.splitlines()))


def _in_order_of_their_ends(evidence: Evidence) -> Iterable[tuple[str, str]]:
    """Return conversation and name of what changed a memory, in the order of the ends."""
    forgot: dict[str, float] = {}
    for end, start, conversation, name in _ends(evidence):
        # What was asked before a conversation was forgotten is not remembered by it any more.
        if start > forgot.get(conversation, 0.0):
            yield conversation, name
        if name.startswith("forget"):
            forgot[conversation] = end


def _forgotten_meanwhile(evidence: Evidence) -> set[str]:
    """Return conversations that something came into in the millisecond in which all was forgotten.

    Journals are no finer: nobody can say which was first.
    """
    starts, forgot = set[tuple[str, float]](), set[tuple[str, float]]()
    for end, start, conversation, name in _ends(evidence):
        starts.add((conversation, start))
        if name.startswith("forget"):
            forgot.add((conversation, end))
    return {conversation for conversation, _ in starts & forgot}


def _ends(evidence: Evidence) -> list[tuple[float, float, str, str]]:
    """Return end, start, conversation and name of what changed a memory, by their ends."""
    accepted = {line["name"]: line["conversation"] for line in evidence.lines("accepted")}
    return sorted(
        (entries[-1].at, entries[0].at, accepted[name], name)
        for name, entries in evidence.journals.items()
        if name in accepted
        and not name.startswith("note")
        and is_closed_by_manager(entries)
        and entries[-1].kind == "finished"
    )
