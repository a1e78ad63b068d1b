"""The calls of a further round: other words, other tools, or several tools together.

Before an answer was written, the plan walks on from the passages that were found: it asks with the
words that no result has. After an answer, it looks for what that answer lacks: by the tools of a
combination, else by the search of the round before in other words, else by another search. A query
that a tool was given before is never given to it again.
"""

from collections.abc import Iterator

from pydantic import JsonValue

from llm.offline.planning.question_parts import find_cues
from llm.offline.rounds.first_round import choose_combination, fill_arguments
from llm.offline.rounds.plan_state import SEARCHES, Call, PlanState
from llm.offline.support import terms, weight_of
from llm.offline.words import content_words

_LONGEST_QUERY = 2_000
_MOST_STARTS = 20
_LEAST_PASSAGES = 2
"""The passages that a round after an answer may show where the plan has used up its share."""


def list_walk(state: PlanState) -> Iterator[Call]:
    """Yield the search that goes on from the passages that were found."""
    search = next((name for name in SEARCHES if name in state.tools), None)
    if search is None or not state.share:
        return
    shown: list[JsonValue] = [*state.shown]
    arguments: dict[str, JsonValue] = {
        "query": _ask_onward(state, search)[:_LONGEST_QUERY],
        "limit": state.share,
        "exclude": shown,
    }
    if search == "graph_search" and shown:
        arguments["start"] = shown[:_MOST_STARTS]
    yield search, arguments


def list_refined(state: PlanState) -> Iterator[Call]:
    """Yield the calls of a round after an answer, none of which was made before."""
    for calls in (_list_combination, _list_same_searches, _list_other_searches):
        found = [one for one in calls(state) if not _was_made(state, one)]
        if found:
            yield from found
            return


def refine_query(state: PlanState) -> str:
    """Return the words to look for: those that the answer lacks first, then the subject.

    Without a gap they are the words of the question alone, without those that only ask.
    """
    lacking = [word for gap in state.gaps or () for word in content_words(gap)]
    subject = [word for word in content_words(state.question.text) if not find_cues(word)]
    found = dict.fromkeys((*lacking, *subject)) or content_words(state.question.text)
    return " ".join(found)[:_LONGEST_QUERY]


def _ask_onward(state: PlanState, search: str) -> str:
    """Return the question with the words once more that no result so far has.

    Where this was asked before, the words with a subject are left; then those that are missing
    come first.
    """
    text = state.question.text
    missing = [
        word
        for word in dict.fromkeys(terms(text, cut=False))
        if weight_of(word) >= 1 and not set(terms(word)) & state.known_terms
    ]
    subject = content_words(text)
    asked = {arguments.get("query") for name, arguments in state.made if name == search}
    queries = (
        " ".join((text, *missing)),
        " ".join(subject),
        " ".join(dict.fromkeys((*missing, *subject))),
        " ".join(reversed(subject)),
    )
    return next((one for one in queries if one and one[:_LONGEST_QUERY] not in asked), text)


def _list_combination(state: PlanState) -> Iterator[Call]:
    """Yield the calls of a combination that has a tool which was not called yet."""
    chosen = choose_combination(state)
    called = {name for name, _ in state.made}
    if chosen is None or not set(chosen[1]) - called:
        return
    query = refine_query(state)
    for name in chosen[1]:
        arguments = fill_arguments(state, name, query, max(_LEAST_PASSAGES, state.share))
        if arguments is not None:
            yield name, arguments


def _list_same_searches(state: PlanState) -> Iterator[Call]:
    """Yield the search of the round before in the words that the answer lacks."""
    known = [name for name, arguments in state.made if "query" in arguments and _fits(state, name)]
    if known and state.gaps:
        yield from _search(state, known[-1], refine_query(state))


def _list_other_searches(state: PlanState) -> Iterator[Call]:
    """Yield a search by the next tool that was not used yet."""
    called = {name for name, _ in state.made}
    own = [name for name in sorted(state.bases) if state.bases[name] in SEARCHES]
    for name in (*(one for one in own if _fits(state, one)), *SEARCHES):
        if name in state.tools and name not in called:
            yield from _search(state, name, refine_query(state))
            return


def _fits(state: PlanState, name: str) -> bool:
    """Return whether a tool is about the gaps: one for penalties finds nothing else."""
    lacking = " ".join(state.gaps or ()) or state.question.text
    own, asked = find_cues(name.replace("_", " ")), {*find_cues(lacking)}
    return all(cue in asked for cue in own)


def _search(state: PlanState, name: str, query: str) -> Iterator[Call]:
    arguments = fill_arguments(state, name, query, max(_LEAST_PASSAGES, state.share))
    if arguments is not None and query:
        yield name, arguments


def _was_made(state: PlanState, call: Call) -> bool:
    """Return whether a tool was given the same query, or the same arguments without one."""
    name, arguments = call
    known = [one for tool, one in state.made if tool == name]
    query = arguments.get("query")
    return any(one.get("query") == query if query else one == arguments for one in known)
