"""Asks every question of its collection once and keeps the features of the searches in a file.

The file has a line per question: label, half, features of the search for the scope and, where
people labelled the decision, those of the search for the answer and what the desk does when both
are good enough. Fitting and reporting then take seconds.
"""

import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.quality.collection import open_collection
from benchmarks.quality.conversation import DECIDED
from benchmarks.quality.scope_report.corpora import Case, Collection
from benchmarks.quality.walk import EvaluationDesk
from config.settings import Settings, load_settings
from deploy.assembly.knowledge import Knowledge
from envelope.conversation import Turn
from knowledge.embedding import Embedder
from knowledge.port import Findings, SearchRequest
from knowledge.search.searcher import LevelSearcher

Features = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Measured:
    """A question and what was found; `then` is the decision without a search."""

    collection: str
    text: str
    label: str
    decision: str
    fitted: bool
    reported: bool
    scope: Features
    related: tuple[str, ...] = ()
    answer: Features = field(default_factory=dict)
    then: str = ""


async def measure_collections(
    collections: tuple[Collection, ...],
    report: Callable[[str], None],
    *,
    embedder: Embedder | None = None,
) -> list[Measured]:
    """Return the features of every question of every collection."""
    found: list[Measured] = []
    settings = load_settings()
    for collection in collections:
        with tempfile.TemporaryDirectory(prefix="refdesk-scope-") as folder:
            path = collection.write(Path(folder))
            async with open_collection([path], settings, embedder) as knowledge:
                asking = _Asking(collection.name, settings, knowledge)
                found += [await asking.ask(case) for case in collection.cases]
        report(f"{collection.name}: {len(collection.cases)} questions")
    return found


def write_features(path: Path, measured: list[Measured]) -> None:
    """Write one line of JSON per question."""
    path.write_text("".join(json.dumps(asdict(one)) + "\n" for one in measured), "utf-8")


def read_features(path: Path) -> list[Measured]:
    """Return what `write_features` wrote."""
    lines = path.read_text("utf-8").splitlines()
    return [_parse(json.loads(line)) for line in lines]


def _parse(row: dict[str, Any]) -> Measured:
    return Measured(**{**row, "related": tuple(row["related"])})


class _Asking:
    """Asks questions of one collection: by a search, or through the flow if they are labelled."""

    def __init__(self, name: str, settings: Settings, knowledge: Knowledge) -> None:
        self._name = name
        self._searcher = _PermissiveSearcher(knowledge)
        self._desk = EvaluationDesk(settings, replace(knowledge, searcher=self._searcher))

    async def ask(self, case: Case) -> Measured:
        self._searcher.seen.clear()
        then = ""
        if case.decision:
            history = [
                Turn(speaker="user" if speaker == "user" else "assistant", text=text)
                for speaker, text in case.history
            ]
            finish, _ = await self._desk.ask(case.text, history)
            then = DECIDED.get(finish.outcome, "failed")
        if not self._searcher.seen and not case.decision:
            request = SearchRequest(question=case.text, text=case.text, language="en", limit=5)
            await self._searcher.search(request)
        seen = self._searcher.seen
        return Measured(
            collection=self._name,
            text=seen[0][0].question if seen else case.text,
            label=case.label if seen else "",
            decision=case.decision,
            fitted=case.fitted,
            reported=case.reported,
            scope=seen[0][1] if seen else {},
            related=seen[0][0].related if seen else (),
            answer=seen[1][1] if len(seen) > 1 else {},
            then=then,
        )


class _PermissiveSearcher(LevelSearcher):
    """Notes the features of every search and reports each as good enough."""

    def __init__(self, knowledge: Knowledge) -> None:
        super().__init__(knowledge.index, knowledge.embedder)
        self.seen: list[tuple[SearchRequest, Features]] = []

    async def search(self, request: SearchRequest) -> Findings:
        findings = await super().search(request)
        self.seen.append((request, findings.features))
        return replace(
            findings, quality="excellent", answerability=1.0, coverage=1.0, ambiguity=0.0
        )
