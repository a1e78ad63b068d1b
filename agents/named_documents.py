"""Finds the documents and rules that a question refers to by title."""

import math
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from envelope.conversation import ClarificationOption
from envelope.run import Run
from envelope.specialists import Extracted
from knowledge.documents.folder import make_sort_key
from knowledge.stop_words import STOP_WORDS

if TYPE_CHECKING:
    from knowledge.library.library import Library

_FILE = Path(__file__).with_name("named_documents.toml")
_WORD = re.compile(r"[^\W_]{1,60}")
_LEAST_SHARE = 0.6
_LEAST_LETTERS = 4
_MOST_DOCUMENTS = 150
_RULE = "law or rule"
_CAPITAL_NOUNS = frozenset({"de"})
_QUOTES = (("„", "“"), ("“", "”"), ("»", "«"), ('"', '"'))
MOST_OFFERS = 4
_MOST_NAMES = 5
_LONGEST = 120
_FRAMEWORKS_FILE = Path(__file__).with_name("frameworks.toml")


@dataclass(frozen=True, slots=True)
class TitledDocument:
    """A document with its names; `kind` is the type that rules determine from the text; it is empty
    if the document was not read.
    """

    id: str
    title: str
    source: str = ""
    language: str = "en"
    kind: str = ""

    @property
    def is_rule(self) -> bool:
        """Whether the title or, failing that, the type identifies a law or another set of rules."""
        words = _split(self.title)
        if words & _load("reviewed"):
            return False
        words |= _split_folder(self.source)
        endings = tuple(_load("rule_endings"))
        named = bool(words & _load("rules")) or any(word.endswith(endings) for word in words)
        return named or self.kind == "law"


@dataclass(frozen=True, slots=True)
class FoundScope:
    """The documents of a review. `notes` lists assumptions and missing documents."""

    documents: tuple[TitledDocument, ...] = ()
    against: tuple[TitledDocument, ...] = ()
    notes: tuple[str, ...] = ()


def find_scope(
    question: str, documents: Sequence[TitledDocument], language: str = "en"
) -> FoundScope:
    """Return the documents that a question refers to, by role. If it refers to none for a role and
    only one document has that role, that document is assumed, unless the question contains a name
    that does not belong to any document.
    """
    named = list_named(question, documents)
    rules = [document for document in named if document.is_rule]
    reviewed = [document for document in named if not document.is_rule]
    if not rules and len(reviewed) > 1:
        rules = [document for document in reviewed if _follows_against(question, document)]
        rules = rules if len(rules) < len(reviewed) else []
        reviewed = [document for document in reviewed if document not in rules]
    unknown = list_unknown_names(question, documents, language)
    if unknown and not (rules and reviewed):
        shown = ", ".join(unknown)
        return FoundScope(tuple(reviewed), tuple(rules), (f"no document is named {shown}",))
    notes: list[str] = []
    if not rules:
        rules = _assume([document for document in documents if document.is_rule], _RULE, notes)
    if not reviewed:
        others = [
            document for document in documents if not document.is_rule and document not in rules
        ]
        reviewed = _assume(others, "document to review", notes)
    return FoundScope(tuple(reviewed), tuple(rules), tuple(notes))


def list_named(question: str, documents: Sequence[TitledDocument]) -> list[TitledDocument]:
    """Return the documents that the question names, by most of their name or by a word that occurs
    in no other name.

    All names of a framework, such as GDPR and General Data Protection Regulation, are treated as
    equal.
    """
    asked = _split(question) - _load("empty") - STOP_WORDS
    generic = _load("rules") | _load("reviewed")
    names = {document.id: _list_names(document) for document in documents}
    counts = Counter(word for own in names.values() for word in frozenset().union(*own))
    weights = {word: math.log(1 + len(documents) / count) for word, count in counts.items()}
    scored: list[tuple[float, TitledDocument]] = []
    meant = set(identify_frameworks(question))
    for document in documents:
        if meant.intersection(identify_frameworks(document.title)):
            scored.append((1.0, document))
            continue
        share = max((_share(own & asked, own, weights) for own in names[document.id]), default=0.0)
        rare = {
            word
            for word in (frozenset().union(*names[document.id]) & asked) - generic
            if counts[word] == 1 and len(word) >= _LEAST_LETTERS and not word.isdigit()
        }
        if share >= _LEAST_SHARE or rare:
            scored.append((max(share, 0.5 * bool(rare)), document))
    scored.sort(key=lambda pair: (-pair[0], make_sort_key(pair[1].source)))
    return [document for _, document in scored[:_MOST_DOCUMENTS]]


def list_unknown_names(
    question: str, documents: Sequence[TitledDocument], language: str = "en"
) -> list[str]:
    """Return the names in a question that look like documents but do not exist.

    A name is a capitalized word, or several in a row, with the type of document: "Bar Act". In
    German, where every noun is capitalized, a name is in quotation marks or follows the type:
    "Vertrag Foo", "Gesetz Bar".
    """
    known = {word for document in documents for name in _list_names(document) for word in name}
    known |= {word for name in _frameworks_of(documents) for word in name}
    names = _list_after_kind if language in _CAPITAL_NOUNS else _list_capitals
    unknown_names = [shown for own, shown in names(question) if not _split(own) & known]
    return list(dict.fromkeys(unknown_names))


def list_offers(
    documents: Sequence[TitledDocument], question: str, *, rules: bool, reviewed: bool
) -> list[str]:
    """Return the names of documents for the missing roles, starting with those most similar to the
    question.

    The files in a folder that represents a law are listed once, under the name of the folder.
    """
    asked = _split(question) - _load("empty") - _load("rules") - _load("reviewed")
    kinds = [
        [document for document in documents if document.is_rule] if rules else [],
        [document for document in documents if not document.is_rule] if reviewed else [],
    ]
    offered: list[list[str]] = []
    for own in kinds:
        own.sort(key=lambda item: _rank_offer(item, asked))
        offered.append(list(dict.fromkeys(_name_offer(document, own) for document in own)))
    pairs = zip_longest(*reversed(offered))
    return list(dict.fromkeys(name for pair in pairs for name in pair if name))


async def offer_documents(
    library: "Library",
    question: str,
    groups: Sequence[str],
    language: str,
    run: Run,
    extracted: Extracted | None = None,
    offers: Sequence[str] = (),
) -> dict[str, Sequence[object]]:
    """Return the names of missing documents, and the existing documents for their roles.
    `extracted` contains the documents found so far. `offers` contains the ids of the documents that
    a model chose; without any, their titles determine which ones are offered. Only documents that
    the person may read are offered; all others are treated as nonexistent.
    """
    extraction = extracted if extracted is not None else Extracted()
    listed = [
        *await library.list_attached(groups, run),
        *await library.list_documents(groups),
    ]
    known = [
        TitledDocument(document.id, document.title, document.source, document.language)
        for document in listed
    ]
    by_id = {document.id: document for document in known}
    chosen = [by_id[name] for name in (offers or extraction.offers) if name in by_id]
    labels = list(dict.fromkeys(_name_offer(document, known) for document in chosen))
    labels = labels or list_offers(
        known,
        question,
        rules=not extraction.against,
        reviewed=not extraction.documents,
    )
    names = list_unknown_names(question, known, language)[:_MOST_NAMES]
    return {
        "unknown_documents": tuple(name[:_LONGEST] for name in names),
        "clarification_options": tuple(
            ClarificationOption(label=label[:_LONGEST]) for label in labels[:MOST_OFFERS]
        ),
    }


def identify_frameworks(*texts: str) -> tuple[str, ...]:
    """Return the frameworks named in texts, such as GDPR, in the order of the table."""
    padded = [f" {' '.join(word.casefold() for word in _WORD.findall(text))} " for text in texts]
    return tuple(
        framework
        for framework, names in _load_frameworks().items()
        if any(f" {name} " in text for name in names for text in padded)
    )


def list_names(framework: str) -> tuple[str, ...]:
    """Return the names of a framework, in lower case."""
    return tuple(_load_frameworks()[framework])


def _assume(
    candidates: Sequence[TitledDocument], role: str, notes: list[str]
) -> list[TitledDocument]:
    folders = {str(PurePosixPath(candidate.source).parent) for candidate in candidates}
    is_one_folder = len(folders) == 1 and not folders & {".", "/"}
    if len(candidates) == 1 or (is_one_folder and role == _RULE):
        name = folders.pop() if len(candidates) > 1 else candidates[0].title
        notes.append(f"the question names no {role}: {name!r} is the only one")
        return sorted(candidates, key=lambda item: make_sort_key(item.source))
    notes.append(f"the question names no {role}, and there are {len(candidates)} of them")
    return []


def _frameworks_of(documents: Sequence[TitledDocument]) -> Iterator[frozenset[str]]:
    """Yield the words in all names of the frameworks that the documents represent."""
    for framework in identify_frameworks(*(document.title for document in documents)):
        for name in list_names(framework):
            yield _split(name)


def _list_capitals(question: str) -> Iterator[tuple[str, str]]:
    """Yield each name, and the name together with the type of document that follows it."""
    generic = _load("rules") | _load("reviewed")
    words = _WORD.findall(question)
    at = 1
    while at < len(words):
        end = at
        while end < len(words) and _is_name(words[end], generic):
            end += 1
        own = words[at:end]
        if own:
            kind = [word for word in words[end : end + 1] if word.casefold() in generic]
            yield " ".join(own), " ".join([*own, *kind])
        at = max(end, at + 1)


def _list_after_kind(question: str) -> Iterator[tuple[str, str]]:
    """Yield each name in quotation marks, and each name after its type, together with the type."""
    quoted, rest = _split_quotes(question)
    yield from ((name, name) for name in quoted if _split(name))
    generic = _load("rules") | _load("reviewed")
    words = _WORD.findall(rest)
    for at, word in enumerate(words):
        end = at + 1
        while _is_german_kind(word) and end < len(words) and _is_name(words[end], generic):
            end += 1
        if own := words[at + 1 : end]:
            yield " ".join(own), " ".join([word, *own])


def _split_quotes(question: str) -> tuple[list[str], str]:
    """Return the texts in quotation marks, and the text without them."""
    names, rest = [], question
    for opening, closing in _QUOTES:
        while (start := rest.find(opening)) >= 0 and (end := rest.find(closing, start + 1)) >= 0:
            names.append(" ".join(rest[start + 1 : end].split()))
            rest = f"{rest[:start]} {rest[end + 1 :]}"
    return names, rest


def _is_german_kind(word: str) -> bool:
    kinds = tuple(_load("german_kinds"))
    return word.casefold().removesuffix("en").removesuffix("es").removesuffix("s").endswith(kinds)


def _is_name(word: str, generic: frozenset[str]) -> bool:
    plain = word.casefold()
    is_long = len(word) >= _LEAST_LETTERS or word.isupper() or plain not in _load("empty")
    return word[0].isupper() and is_long and plain not in generic | _load("empty")


def _rank_offer(document: TitledDocument, asked: frozenset[str]) -> tuple[bool, int, str]:
    words = _split(document.title)
    is_usual = document.is_rule or bool(words & _load("reviewed") and not words & _load("rules"))
    return not is_usual, -len(words & asked), document.title


def _name_offer(document: TitledDocument, own: Sequence[TitledDocument]) -> str:
    folder = PurePosixPath(document.source).parent
    is_shared = sum(PurePosixPath(other.source).parent == folder for other in own) > 1
    if document.is_rule and is_shared and _split_folder(document.source) & _load("rules"):
        return folder.name.replace("_", " ").replace("-", " ")
    return document.title


def _share(shared: Iterable[str], own: Iterable[str], weights: Mapping[str, float]) -> float:
    total = sum(weights[word] for word in own)
    return sum(weights[word] for word in shared) / total if total else 0.0


def _list_names(document: TitledDocument) -> tuple[frozenset[str], ...]:
    stem = PurePosixPath(document.source).stem
    # A law may be a folder of articles, but the folder of a contract also contains other documents.
    folder = _split_folder(document.source) if document.is_rule else frozenset[str]()
    names = (_split(document.title), _split_name(stem), folder)
    generic = _load("rules") | _load("reviewed")
    own = tuple(words for name in names if (words := name - _load("empty")) and words - generic)
    # A title such as GDPR is a name, although it is also a generic word.
    return own or ((_split(document.title),) if document.title.isupper() else ())


def _follows_against(question: str, document: TitledDocument) -> bool:
    plain = question.casefold()
    words = [word for name in _list_names(document) for word in name]
    places = [place for word in words if (place := plain.find(word)) >= 0]
    cues = [place for cue in _load("against") if (place := plain.rfind(f" {cue} ")) >= 0]
    return bool(places and cues) and min(places) > min(cues)


def _split_folder(source: str) -> frozenset[str]:
    """Return the words in the name of a file's folder, which may represent a law with one file per
    article.
    """
    return _split_name(PurePosixPath(source).parent.name)


def _split_name(name: str) -> frozenset[str]:
    return _split(name.replace("_", " ").replace("-", " "))


def _split(text: str) -> frozenset[str]:
    return frozenset(word.casefold() for word in _WORD.findall(text))


@cache
def _load(key: str) -> frozenset[str]:
    tables: dict[str, list[str]] = tomllib.loads(_FILE.read_text("utf-8"))
    return frozenset(tables[key])


@cache
def _load_frameworks() -> dict[str, list[str]]:
    frameworks: dict[str, list[str]] = tomllib.loads(_FRAMEWORKS_FILE.read_text("utf-8"))
    return frameworks
