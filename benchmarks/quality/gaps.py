"""The suite `gaps`: measures whether gaps name the missing pages.

The questions are divided into halves by the page that they need. For each half, all pages that its
questions need are removed from the index, so that the questions are gaps, which are grouped as in
the console. Two questions belong together if one page answers both. A group names a page if the
page that most of its questions need is among the three that they find together in the complete
index, so that an owner who reads the group knows which page to write. `neighbours`: the nearest
remaining page, as shown in the console, is in the same chapter as the missing one.
"""

import hashlib
import json
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.quality.collection import open_collection
from cli.evaluation.questions import corpus_of, questions_of, rows
from config.settings import Settings
from knowledge.calibration.queries import find_foreign_questions
from knowledge.embedding import Embedder, local_embedder
from knowledge.port import SearchRequest
from records.grouping import CLOSENESS, find_least, group_vectors

Figures = dict[str, object]
HALVES = ("first", "second")
CLOSENESSES = (0.3, 0.35, CLOSENESS, 0.45, 0.5)
_SHOWN = 3
_LIMIT = 20


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, the pages that answer it, and the pages that the search found, the best first."""

    request: SearchRequest
    needs: frozenset[str]
    found: tuple[str, ...] = ()
    nearest: tuple[str, ...] = ()


async def evaluate(data: Path, *, embedder: Embedder | None = None) -> Figures:
    """Return the figures of a folder; raises `UnknownFormatError` for another kind of folder."""
    corpus = [row for path in corpus_of(data) for row in rows(path)]
    pages = {_id_of(row): str(row.get("doc") or _id_of(row)) for row in corpus}
    chapters = {pages[_id_of(row)]: tuple(row.get("crumbs") or ())[:-1] for row in corpus}
    model = local_embedder() if embedder is None else embedder
    asked = [
        Asked(_stand_alone(question.request), needs)
        for question in questions_of(data, limit=_LIMIT)
        if (needs := frozenset(pages[name] for name in question.gold if name in pages))
    ]
    complete = await _search(corpus, asked, pages, model)
    unrelated = np.array(await model.embed_questions(find_foreign_questions("en")), np.float32)
    halves: Figures = {}
    for number, half in enumerate(HALVES):
        taken = [replace(one, found=pages) for one, pages in zip(asked, complete, strict=True)
                 if _half_of(one) == number]  # fmt: skip
        gone = {page for asked_question in taken for page in asked_question.needs}
        left = [row for row in corpus if pages[_id_of(row)] not in gone]
        nearest = await _search(left, taken, pages, model)
        taken = [replace(one, nearest=pages) for one, pages in zip(taken, nearest, strict=True)]
        vectors = np.array(
            await model.embed_questions([item.request.question for item in taken]), np.float32
        )
        halves[half] = {
            "questions": len(taken),
            "pages": len({_main_page(item) for item in taken}),
            "a_question_alone_names_its_page": _share(
                not item.needs.isdisjoint(item.found[:_SHOWN]) for item in taken
            ),
            "by_closeness": {
                str(closeness): _judge(
                    taken, group_vectors(vectors, find_least(unrelated, closeness)), chapters
                )
                for closeness in CLOSENESSES
            },
        }
    return {"suite": "gaps", "data": data.name, "closeness": CLOSENESS, **halves}


async def _search(
    corpus: Sequence[Mapping[str, Any]],
    asked: Sequence[Asked],
    pages: Mapping[str, str],
    model: Embedder,
) -> list[tuple[str, ...]]:
    """Return the pages found for each question in an index of the given rows."""
    with tempfile.TemporaryDirectory(prefix="refdesk-gaps-") as folder:
        name = "passages.jsonl" if "passage_id" in corpus[0] else "pages.jsonl"
        path = Path(folder) / name
        path.write_text("\n".join(json.dumps(row) for row in corpus), encoding="utf-8")
        async with open_collection([path], Settings(_env_file=None), model) as knowledge:
            results = [
                await knowledge.searcher.search(gap_question.request) for gap_question in asked
            ]
    return [
        tuple(dict.fromkeys(pages.get(hit.page, hit.page) for hit in findings.hits))
        for findings in results
    ]


def _judge(
    asked: Sequence[Asked], labels: Sequence[int], chapters: Mapping[str, tuple[str, ...]]
) -> Figures:
    pairs = list(combinations(range(len(asked)), 2))
    wanted = {(a, b) for a, b in pairs if asked[a].needs & asked[b].needs}
    made = {(a, b) for a, b in pairs if labels[a] == labels[b]}
    groups: defaultdict[int, list[Asked]] = defaultdict(list)
    for label, gap_question in zip(labels, asked, strict=True):
        groups[label].append(gap_question)
    several = [group for group in groups.values() if len(group) > 1]
    return {
        "groups": len(groups),
        "groups_of_several": len(several),
        "pairs_that_belong_together": _divide(len(wanted & made), len(made)),
        "pairs_that_were_found": _divide(len(wanted & made), len(wanted)),
        "names_its_page": _share(_name_page(group) for group in several),
        "neighbours": _share(
            _rank(gap_question.nearest for gap_question in group)[:1] != []
            and chapters[_rank(gap_question.nearest for gap_question in group)[0]]
            == chapters[_needed(group)]
            for group in several
            if chapters[_needed(group)]
        ),
    }


def _name_page(group: Sequence[Asked]) -> bool:
    return _needed(group) in _rank(gap_question.found for gap_question in group)[:_SHOWN]


def _needed(group: Iterable[Asked]) -> str:
    """Return the page that most questions of a group need."""
    counts = Counter(page for gap_question in group for page in gap_question.needs)
    return min(counts, key=lambda page: (-counts[page], page))


def _rank(rankings: Iterable[Sequence[str]]) -> list[str]:
    """Return pages ranked by the sum of their reciprocal ranks, as in the console."""
    scores: defaultdict[str, float] = defaultdict(float)
    for pages in rankings:
        for rank, page in enumerate(pages[:_SHOWN], start=1):
            scores[page] += 1 / rank
    return sorted(scores, key=lambda page: (-scores[page], page))


def _stand_alone(request: SearchRequest) -> SearchRequest:
    """Return a question combined with the preceding question, instead of a canonical form written
    by a model.
    """
    text = " ".join((*request.related[:1], request.question))
    return SearchRequest(question=text, text=text, language=request.language, limit=_LIMIT)


def _half_of(asked: Asked) -> int:
    return int(hashlib.sha256(_main_page(asked).encode()).hexdigest(), 16) % len(HALVES)


def _main_page(asked: Asked) -> str:
    return min(asked.needs)


def _id_of(row: Mapping[str, Any]) -> str:
    return str(row.get("page_id") or row.get("passage_id"))


def _share(values: Iterable[bool]) -> float | None:
    listed = list(values)
    return _divide(sum(listed), len(listed))


def _divide(part: int, whole: int) -> float | None:
    return round(part / whole, 2) if whole else None
