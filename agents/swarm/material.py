"""Collects the results of the workers, with their passages as numbered sources."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from types import MappingProxyType

from pydantic import BaseModel

from agents.swarm.swarm_plan import SwarmPlan, WorkerPlan
from agents.swarm.workers import WorkerOutput, WorkerStatus, names_subject
from citations.marking import escape_brackets
from citations.verbatim import as_markdown
from knowledge.sections import document_of
from tools.calls import CitedPassage
from tools.passages import FoundPassage

USUAL_ROOM = 24_000
"""Total number of characters for all sources if the context window of the model is unknown."""
_ID = re.compile(r"\[([^\[\]\s]{1,300})\]")
_BAR = re.compile(r"(?<!\\)\|")
_UNFINISHED = "it did not finish, so it is unknown what the documents say about it"
_NOTHING = "nothing was found"
_WAITS = "it waits for the user"


@dataclass(frozen=True, slots=True)
class ItemTable:
    """The findings by item and criterion; a cell without a finding is empty.

    `unread` contains the items that no worker could look up, each with the text for its cells.
    """

    items: tuple[str, ...]
    criteria: tuple[str, ...]
    cells: Mapping[tuple[str, str], str]
    unread: Mapping[str, str] = field(default_factory=dict)

    def render(self, head: str, nothing: str) -> str:
        """Return the table as Markdown; `head` is the heading above the items, and `nothing` is
        shown in empty cells.
        """
        rows = [
            (
                as_markdown(item),
                *(
                    self._find(item, criterion) or self.unread.get(item, nothing)
                    for criterion in self.criteria
                ),
            )
            for item in self.items
        ]
        lines = (
            (head, *map(as_markdown, self.criteria)),
            ("---",) * (len(self.criteria) + 1),
            *rows,
        )
        return "\n".join(map(_render_row, lines))

    def _find(self, item: str, criterion: str) -> str:
        return self.cells.get((_fold(item), _fold(criterion)), "").strip()


class NumberedSource(BaseModel, frozen=True, extra="ignore"):
    """A source of an answer with its text."""

    number: int
    citation: CitedPassage
    text: str


class WrittenFinding(BaseModel, frozen=True, extra="ignore"):
    """The text of a worker with the numbers of its sources.

    `problem` is the reason why it has no result; `item` is the table item that it looked up.

    `is_failed` is true if the worker could not search, so that it is unknown whether the documents
    contain the fact.
    """

    worker: str
    objective: str
    item: str = ""
    text: str
    sources: tuple[int, ...] = ()
    problem: str = ""
    is_failed: bool = False


class SwarmMaterial(BaseModel, frozen=True, extra="ignore"):
    """All findings in the order of the plan; `left_out` counts passages that did not fit."""

    sources: tuple[NumberedSource, ...]
    findings: tuple[WrittenFinding, ...]
    left_out: int = 0


def make_table(
    items: Sequence[str],
    criteria: Sequence[str],
    cells: Mapping[tuple[str, str], str],
    unread: Mapping[str, str] = MappingProxyType({}),
) -> ItemTable:
    """Return the table of these items and criteria; cells for other items or criteria are
    omitted.
    """
    folded = {(_fold(item), _fold(one)): text for (item, one), text in cells.items()}
    return ItemTable(tuple(items), tuple(criteria), folded, dict(unread))


def list_unread(plan: SwarmPlan, outputs: Mapping[str, WorkerOutput]) -> dict[str, str]:
    """Return the parts whose workers all ended without looking them up, each with the error."""
    looked: set[str] = set()
    errors: dict[str, str] = {}
    for worker in plan.workers:
        output, part = outputs.get(worker.id), _name_part(worker)
        if output is not None and output.status is WorkerStatus.DONE:
            looked.add(part)
        else:
            errors.setdefault(part, "" if output is None else output.error)
    return {part: error for part, error in errors.items() if part not in looked}


def find_closest(
    plan: SwarmPlan, outputs: Mapping[str, WorkerOutput]
) -> dict[str, FoundPassage | None]:
    """Return, for each item, the closest passage that names it, or None if nothing was found."""
    closest: dict[str, FoundPassage | None] = {}
    for worker in plan.workers:
        output = outputs.get(worker.id)
        if worker.subject and closest.get(worker.subject) is None:
            passages = output.passages if output is not None else ()
            named = (passage for passage in passages if names_subject(worker.subject, passage))
            closest[worker.subject] = next(named, None)
    return closest


def choose_shown(
    plan: SwarmPlan, outputs: Mapping[str, WorkerOutput], most: int
) -> tuple[FoundPassage, ...]:
    """Return at most `most` passages from different documents.

    The workers take turns in the order of the plan, with their best passages first; workers on
    which others depend come later.
    """
    leading = {other for worker in plan.workers for other in worker.depends_on}
    own = [
        _list_passages(outputs, worker_plan.id)
        for worker_plan in plan.workers
        if worker_plan.id not in leading
    ]
    rest = [
        _list_passages(outputs, worker_plan.id)
        for worker_plan in plan.workers
        if worker_plan.id in leading
    ]
    shown: dict[str, FoundPassage] = {}
    for group in (*_take_turns(own, 2), *rest, *_take_turns(own, most)):
        for passage in group:
            if len(shown) < most:
                shown.setdefault(document_of(passage.citation.chunk_id), passage)
    return tuple(shown.values())


def gather_material(
    plan: SwarmPlan, outputs: Mapping[str, WorkerOutput], room: int = USUAL_ROOM
) -> SwarmMaterial:
    """Return the findings of all workers, with as many of their passages as fit.

    Passages that a text refers to come first, followed by the best passage of each worker, then the
    second, and so on. A worker without a result is omitted if another one looked up the same item
    or had the same brief.
    """
    passages = _order_passages(plan, outputs)
    sources: list[NumberedSource] = []
    for passage in passages:
        room -= len(passage.text)
        if room < 0 and sources:
            break
        number = len(sources) + 1
        sources.append(NumberedSource(number=number, citation=passage.citation, text=passage.text))
    numbers = {source.citation.chunk_id: source.number for source in sources}
    done = {_name_part(worker) for worker in plan.workers if _is_done(outputs.get(worker.id))}
    findings = (
        _make_finding(worker, outputs.get(worker.id), numbers)
        for worker in plan.workers
        if _name_part(worker) not in done or _is_done(outputs.get(worker.id))
    )
    return SwarmMaterial(
        sources=tuple(sources), findings=tuple(findings), left_out=len(passages) - len(sources)
    )


def cite_by_number(
    text: str, numbers: Mapping[str, int], passages: Iterable[CitedPassage] = ()
) -> str:
    """Return the text with the ids of passages replaced with their numbers; ids in brackets without
    a number are removed. Elsewhere, and for documents, an id is replaced with a title.

    Other numbers in brackets are escaped, because they were copied from a document.
    """
    titles = {passage.document_id: f"[{passage.title}]" for passage in passages}
    marks = {passage.chunk_id: passage.title for passage in passages}
    marks |= {name: f"[{number}]" for name, number in numbers.items()}

    def replace(match: re.Match[str]) -> str:
        number = numbers.get(match[1])
        unknown = "" if "#" in match[1] else titles.get(match[1], match[0])
        return unknown if number is None else f"[{number}]"

    named = _ID.sub(replace, escape_brackets(text))
    for name in sorted(marks, key=len, reverse=True):
        named = named.replace(f"({name})", marks[name]).replace(name, marks[name])
    return named


def _fold(text: str) -> str:
    return " ".join(text.split()).casefold()


def _render_row(cells: Sequence[str]) -> str:
    """Return a table row; bars are escaped, because a bar in a cell would end the cell."""
    escaped = (_BAR.sub(r"\|", " ".join(cell.split())) for cell in cells)
    return f"| {' | '.join(escaped)} |"


def _list_passages(outputs: Mapping[str, WorkerOutput], worker_id: str) -> Sequence[FoundPassage]:
    output = outputs.get(worker_id)
    return output.passages if output is not None else ()


def _take_turns(own: Sequence[Sequence[FoundPassage]], turns: int) -> list[list[FoundPassage]]:
    return [[passages[turn] for passages in own if len(passages) > turn] for turn in range(turns)]


def _name_part(worker: WorkerPlan) -> str:
    """Return the part that a worker looks up; workers with the same item or the same brief share a
    part.
    """
    return worker.subject or worker.objective


def _is_done(output: WorkerOutput | None) -> bool:
    return output is not None and output.is_usable


def _order_passages(plan: SwarmPlan, outputs: Mapping[str, WorkerOutput]) -> list[FoundPassage]:
    """Return all passages without duplicates, each with its longest text."""
    own = [outputs[worker.id] for worker in plan.workers if worker.id in outputs]
    named = [_list_named(output) for output in own]
    others = [list(output.passages) for output in own]
    texts: dict[str, FoundPassage] = {}
    for passage in (*_take_in_turn(named), *_take_in_turn(others)):
        known = texts.get(passage.citation.chunk_id)
        if known is None or len(known.text) < len(passage.text):
            texts[passage.citation.chunk_id] = passage
    return [text for text in texts.values() if text.text.strip()]


def _list_named(output: WorkerOutput) -> list[FoundPassage]:
    ids = set(_ID.findall(output.text))
    return [passage for passage in output.passages if passage.citation.chunk_id in ids]


def _take_in_turn(lists: Sequence[Sequence[FoundPassage]]) -> Iterator[FoundPassage]:
    for row in zip_longest(*lists):
        yield from (passage for passage in row if passage is not None)


def _make_finding(
    worker: WorkerPlan, output: WorkerOutput | None, numbers: Mapping[str, int]
) -> WrittenFinding:
    passages = output.passages if output is not None else ()
    cited = [passage.citation for passage in passages]
    return WrittenFinding(
        worker=worker.specialization,
        objective=worker.objective[:500],
        item=worker.subject,
        text="" if output is None else cite_by_number(output.text, numbers, cited),
        sources=tuple(numbers[each.chunk_id] for each in cited if each.chunk_id in numbers),
        problem=_name_problem(output),
        is_failed=output is None or output.status is not WorkerStatus.DONE,
    )


def _name_problem(output: WorkerOutput | None) -> str:
    if output is None:
        return _UNFINISHED
    if output.status is WorkerStatus.NEEDS_INPUT:
        return _WAITS
    if output.status is WorkerStatus.FAILED:
        return output.error or "it failed"
    return "" if output.is_usable else _NOTHING
