"""Composes the nine collections of the report from a folder with public evaluation sets.

Every collection has its documents and questions with a label: `in_scope`, `near` (a
neighbouring subject), `far` (another trade) or `chitchat`. Questions that lie outside are
halved by a hash of their text: one half may be fitted on, the other half is reported. So no
question outside is ever both, though it is asked of several collections.
"""

import json
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploy.evaluation.questions import UnknownFormatError, rows

IN_SCOPE = "in_scope"
OUTSIDE = ("near", "far", "chitchat")
DOMAINS = {"ibmcloud": "IBM Cloud", "govt": "government", "fiqa": "finance", "clapnq": "Wikipedia"}
_DECISIONS = {
    "ANSWERABLE": "answer",
    "PARTIAL": "answer",
    "UNDERSPECIFIED": "ask",
    "UNANSWERABLE": "refuse",
}
_MOST = 160
_MONEY = re.compile(
    r"\b(?:accounts?|apr|bank|bills?|cards?|cash|charged?|checks?|credit|dollars|euros|fees?|"
    r"insurance|loan|money|mortgage|paid|pay|payments?|refund|stocks?|tax|taxes|transfers?)\b",
    re.IGNORECASE,
)
"""Words of questions that are not far from documents that know of payments or taxes."""
_QUOTED = re.compile(r'["“]([^"“”]{15,400}\?)["”]')
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Case:
    """A question with its label; `decision` is answer, ask or refuse where people labelled it.

    A case without `label` counts for the decision alone. `fitted` says that it may be fitted on
    when its collection is not the one that is left out; `reported`, that it may be reported on.
    """

    text: str
    label: str
    decision: str = ""
    history: tuple[tuple[str, str], ...] = ()

    @property
    def fitted(self) -> bool:
        return self.label not in OUTSIDE or not self._half

    @property
    def reported(self) -> bool:
        return self.label not in OUTSIDE or self._half

    @property
    def _half(self) -> bool:
        return bool(zlib.crc32(self.text.encode()) % 2)


@dataclass(frozen=True, slots=True)
class Collection:
    """Documents, as a file name with its lines of JSON, and the questions asked of them."""

    name: str
    file: str
    documents: Sequence[Row]
    cases: tuple[Case, ...]

    def write(self, folder: Path) -> Path:
        """Write the documents to a folder and return the file."""
        path = folder / self.file
        path.write_text("".join(json.dumps(row) + "\n" for row in self.documents), "utf-8")
        return path


def compose_collections(data: Path) -> tuple[Collection, ...]:
    """Return the nine collections; raises `UnknownFormatError` when a set is missing."""
    sets = _Sets(data)
    near = sets.cloud
    return (
        _make_documentation(sets, "Ray", "docs_ray", sets.ray, [*sets.fastapi, *near]),
        _make_documentation(sets, "FastAPI", "docs_fastapi", sets.fastapi, [*sets.ray, *near]),
        *(_make_domain(sets, domain) for domain in DOMAINS),
        _make_xquad(sets),
        _make_bank(sets),
        _make_regulation(sets),
    )


class _Sets:
    """The questions of every set; each list is in an order that does not depend on its file."""

    def __init__(self, data: Path) -> None:
        self._data = data
        scope = self.read("scope_docs/queries.jsonl")
        self.ray = _shuffle(row["text"] for row in scope if row["label"] == IN_SCOPE)
        self.fastapi = _shuffle(
            row["query"] for row in self.read("docs_fastapi/queries.jsonl") if row["lang"] == "en"
        )
        self.tasks = self.read("qa_mtrag/tasks.jsonl")
        self.cloud, self.government, self.finance, self.wikipedia = map(self._openings, DOMAINS)
        self.privacy = _shuffle(
            row["question"] for row in self.read("compliance_policyqa/privacyqa_questions.jsonl")
        )
        self.trades = _shuffle(
            row["text"] for row in scope if row["label"] == "far" and row["source"] == "clinc"
        )
        self.banking = _shuffle(
            row["text"] for row in scope if row["label"] == "far" and row["source"] != "clinc"
        )
        talk = [row["text"] for row in scope if row["label"] == "chitchat"]
        clinc = self.read("scope_clinc/test.jsonl")
        self.chitchat = _shuffle(
            [*talk, *(row["text"] for row in clinc if row["domain"] == "small_talk")]
        )

    def read(self, name: str) -> list[Row]:
        path = self._data / name
        if not path.is_file():
            raise UnknownFormatError(f"expected {name} in {self._data}, found no such file")
        return list(rows(path))

    def outside(self, near: Iterable[str], *, has_money: bool = False) -> tuple[Case, ...]:
        """Return the questions outside; `has_money`: questions about money are not far."""
        asked = _shuffle([*self.trades, *self.banking])
        far = [text for text in asked if not (has_money and _MONEY.search(text))]
        labelled = (("near", _shuffle(near)), ("far", far), ("chitchat", self.chitchat))
        return tuple(Case(text, label) for label, texts in labelled for text in texts[: 2 * _MOST])

    def _openings(self, domain: str) -> list[str]:
        return _shuffle(
            row["rewrite"] or row["query"]
            for row in self.tasks
            if row["domain"] == domain and (not row["history"] or row["rewrite"])
        )


def _make_documentation(
    sets: _Sets, name: str, folder: str, inside: Sequence[str], near: Sequence[str]
) -> Collection:
    cases = (*(Case(text, IN_SCOPE) for text in inside[:_MOST]), *sets.outside(near))
    return Collection(name, "pages.jsonl", sets.read(f"{folder}/pages.jsonl"), cases)


def _make_domain(sets: _Sets, domain: str) -> Collection:
    """Return a domain of the conversations; its documents are the passages that people used."""
    near = {
        "ibmcloud": [*sets.ray, *sets.fastapi],
        "govt": [*sets.finance, *sets.wikipedia, *sets.privacy[:60]],
        "fiqa": [*sets.government, *sets.banking],
        "clapnq": _questions_of_xquad(sets, answerable=True)[: 2 * _MOST],
    }[domain]
    tasks = [row for row in sets.tasks if row["domain"] == domain]
    named = {name for row in tasks for name in row["gold_passages"]}
    passages = sets.read("qa_mtrag/passages.jsonl")
    documents = {row["doc"] for row in passages if row["passage_id"] in named}
    cases = [
        Case(
            row["query"],
            IN_SCOPE if _DECISIONS[row["answerability"]] == "answer" else "",
            _DECISIONS[row["answerability"]],
            tuple((turn["speaker"], turn["text"]) for turn in row["history"]),
        )
        for row in tasks
        if row["answerability"] in _DECISIONS
    ]
    return Collection(
        DOMAINS[domain],
        "passages.jsonl",
        [row for row in passages if row["doc"] in documents],
        (*cases, *sets.outside(near, has_money=domain != "clapnq")),
    )


def _make_xquad(sets: _Sets) -> Collection:
    """Return the English paragraphs; questions about articles that are missing are near."""
    passages = [row for row in sets.read("qa_xquad/passages.jsonl") if row["lang"] == "en"]
    inside = _questions_of_xquad(sets, answerable=True)[:_MOST]
    missing = _questions_of_xquad(sets, answerable=False)
    cases = (
        *(Case(text, IN_SCOPE, "answer") for text in inside),
        *(Case(text, "", "refuse") for text in missing),
        *sets.outside([*missing, *sets.wikipedia]),
    )
    return Collection("XQuAD", "passages.jsonl", passages, cases)


def _questions_of_xquad(sets: _Sets, *, answerable: bool) -> list[str]:
    return _shuffle(
        row["query"]
        for row in sets.read("qa_xquad/questions.jsonl")
        if row["lang"] == "en" and row["answerable"] == answerable
    )


def _make_bank(sets: _Sets) -> Collection:
    """Return the bank's pages; asked are its customers' first questions and titles with a "?"."""
    pages = sets.read("loop_kb/docs.jsonl")
    first = (_QUOTED.search(row["scenario"]) for row in sets.read("loop_kb/tasks.jsonl"))
    asked = [found.group(1) for found in first if found is not None]
    asked += [row["title"] for row in pages if row["title"].endswith("?")]
    documents = [{"passage_id": row["doc_id"], **row} for row in pages]
    near = [*sets.finance, *sets.government, *sets.privacy[:60]]
    inside = (Case(text, IN_SCOPE) for text in _shuffle(asked))
    cases = (*inside, *sets.outside(near, has_money=True))
    return Collection("bank", "passages.jsonl", documents, cases)


def _make_regulation(sets: _Sets) -> Collection:
    asked = _shuffle(row["query"] for row in sets.read("regulation_eu/queries.jsonl"))
    near = [*sets.privacy[:160], *sets.government, *sets.finance]
    cases = (*(Case(text, IN_SCOPE) for text in asked[:_MOST]), *sets.outside(near))
    units = sets.read("regulation_eu/units.jsonl")
    return Collection("EU AI Act", "units.jsonl", units, cases)


def _shuffle(texts: Iterable[str]) -> list[str]:
    """Return different texts, in an order by hash."""
    return sorted(dict.fromkeys(texts), key=lambda text: (zlib.crc32(text[::-1].encode()), text))
