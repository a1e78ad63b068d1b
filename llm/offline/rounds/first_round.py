"""The calls of the first round: a calculation, a comparison, tools of a set, and searches.

A tool of a set is called alone where its name says what the question asks for; where the question
asks for two things, such as rules and the fine for breaking them, the tools of a combination are
called together, each for its part.
"""

import re
from collections.abc import Iterator

from pydantic import JsonValue

from envelope.ways.tool_loop import Intent
from llm.offline.planning.question_parts import QuestionParts, find_cues, split_aspects
from llm.offline.rounds.plan_state import SEARCHES, Call, PlanState

SUMMARIZE = "summarize"
_MOST_SEPARATE = 3
_LEAST_PARTS = 2
_MOST_AT_ONCE = 30
_LONGEST_QUERY = 2_000
_CUE_RESULTS = 2


def list_first(state: PlanState) -> Iterator[Call]:
    """Yield the calls of the first round."""
    question = state.question
    if question.arithmetic and "calculator" in state.tools:
        yield "calculator", {"expression": question.arithmetic}
    compared = list(_list_comparisons(state))
    yield from compared
    combined = list(list_combined(state))
    cued = combined or list(_list_cued(state))
    yield from cued
    is_served = any(name in state.bases or name == SUMMARIZE for name, _ in cued)
    if state.share and not (is_served and not question.arithmetic and not compared):
        yield from list_searches(state)


def list_searches(state: PlanState) -> Iterator[Call]:
    """Yield a search for each separate question; for a long text one with all of its sentences."""
    search = next((name for name in SEARCHES if name in state.tools), None)
    if search is None:
        return
    question = state.question
    if question.is_long and "search" in state.tools:
        # Its parts are about several things: links of the first passages lead to one of them.
        aspects: list[JsonValue] = [*question.sentences]
        limit = min(state.most_passages, _MOST_AT_ONCE)
        yield "search", {"query": question.text, "aspects": aspects, "limit": limit}
        return
    separate = question.separate[:_MOST_SEPARATE]
    for part in separate:
        yield (
            search,
            {
                "query": part[:_LONGEST_QUERY],
                "limit": max(1, state.share // len(separate)),
                "exclude": [],
            },
        )


def fill_arguments(
    state: PlanState, name: str, query: str, limit: int
) -> dict[str, JsonValue] | None:
    """Return the arguments with which the rules can call a tool for a query; None: they cannot."""
    known = state.inputs[name]
    if {"old", "new"} <= known:
        versions = match_versions(state.question, state.versions)
        return make_comparison(state.question, versions) if len(versions) > 1 else None
    if "document_id" in known:
        found = (*state.documents, *(one.rpartition("#")[0] for one in state.shown))
        return {"document_id": found[0]} if found else None
    if known and "query" not in known:
        return None
    arguments: dict[str, JsonValue] = {"query": query[:_LONGEST_QUERY]}
    # A tool of a set may fix its limit: to give one is an error then.
    if not known or "limit" in known:
        arguments["limit"] = limit
    if "exclude" in known and state.shown:
        arguments["exclude"] = [*state.shown]
    return arguments


def choose_combination(state: PlanState) -> tuple[str, tuple[str, ...]] | None:
    """Return the purpose and the tools of the combination that fits the question best."""
    asked = state.question.cues
    fitting = []
    for purpose, names in state.combinations.items():
        tools = tuple(name for name in names if name in state.tools)
        offered = {cue for one in (purpose, *tools) for cue in find_cues(one.replace("_", " "))}
        if len(tools) > 1 and asked & offered:
            fitting.append((len(asked & offered), -len(offered - asked), purpose, tools))
    if not fitting:
        return None
    *_, purpose, tools = max(fitting, key=lambda one: one[:2])
    return purpose, tools


def list_combined(state: PlanState) -> Iterator[Call]:
    """Yield the calls of a combination, where the question asks for two things.

    A tool whose name says what one part asks for gets this part; the others get the rest.
    """
    chosen = choose_combination(state)
    parts = split_aspects(state.question)
    if chosen is None or len(parts) < _LEAST_PARTS:
        return
    cued = [part for part in parts if state.question.cues & frozenset(find_cues(part))]
    plain = [part for part in parts if part not in cued] or list(parts)
    for name in chosen[1]:
        own = frozenset(find_cues(name.replace("_", " "))) & state.question.cues
        for part in cued[:1] if own else plain[:_MOST_SEPARATE]:
            arguments = fill_arguments(state, name, part, max(1, state.share // len(parts)))
            if arguments is not None:
                yield name, arguments


def match_versions(question: QuestionParts, stated: tuple[str, ...]) -> list[str]:
    """Return the stated versions that a question names, such as `r5` for "revision 5"."""
    found = []
    for number in question.versions:
        matching = (one for one in stated if one.lstrip("vVrR").lstrip("ev. ") == number)
        found.append(next(matching, number))
    if len(found) == 1 and found[0] in stated and question.intent is Intent.COMPARISON:
        # New in a version means: since the one before it.
        earlier = [one for one in stated if read_numbers(one) < read_numbers(found[0])]
        return [*sorted(earlier, key=read_numbers)[-1:], *found]
    return found


def make_comparison(question: QuestionParts, versions: list[str]) -> dict[str, JsonValue]:
    """Return the arguments of a comparison of the first and the last of some versions."""
    old, *_, new = versions
    return {"old": old, "new": new, "title_prefix": question.prefix, "limit": 100}


def _list_comparisons(state: PlanState) -> Iterator[Call]:
    versions = match_versions(state.question, state.versions)
    tool = state.find_by_base("compare_documents")
    if state.question.intent is Intent.COMPARISON and len(versions) > 1 and tool is not None:
        yield tool, make_comparison(state.question, versions)


def _list_cued(state: PlanState) -> Iterator[Call]:
    """Yield a call of each tool whose name says what the question asks for."""
    summary = state.find_by_base(SUMMARIZE) if Intent.SUMMARY.value in state.question.cues else None
    for name in sorted(state.tools):
        is_cued = any(f"{cue}_" in name or f"_{cue}" in name for cue in state.question.cues)
        if not is_cued and name != summary:
            continue
        if {"old", "new"} <= state.inputs[name]:
            continue
        arguments = fill_arguments(state, name, state.question.text, _CUE_RESULTS)
        if arguments is not None:
            yield name, arguments


def read_numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, in order."""
    return tuple(int(number) for number in re.findall(r"\d{1,9}", version[:100]))
