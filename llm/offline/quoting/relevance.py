"""Weighs what can be quoted by how much of a question it holds; rare words weigh more.

A word of the question counts in full where the quotation itself holds it. It counts less where
only its heading or page title does, and less again where the sentence before it does: "It has
eight ports" answers a question about the device that its heading names.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

from citations.claims import UnitKind
from llm.offline.quoting import counting
from llm.offline.quoting.extracts import (
    Extract,
    collect_before,
    collect_names,
    collect_terms,
    split_cells,
)
from llm.offline.quoting.key_terms import (
    ASKING_TERMS,
    extract_asked_terms,
    extract_key_terms,
    find_last_term,
)
from llm.offline.quoting.naming import (
    KIND_TERMS,
    TIME_TERMS,
    Label,
    find_codes,
    find_group,
    find_head,
    find_labels,
    find_modifiers,
    find_names,
    find_provisions,
    find_stated_numbers,
    find_stated_versions,
    find_unknown_role,
    find_versions,
    is_list_of_changes,
)
from llm.offline.quoting.question_kinds import QuestionKinds, classify_question, states_no_sum
from llm.offline.support import numbers_of, terms
from llm.tasks.respond import PromptSource

PLACE_CREDIT = 0.9
BEFORE_CREDIT = 0.4
AROUND_CREDIT = 0.4
RANK_SHARE = 1.0
FIT_BONUS = 0.2
ROW_BONUS = 0.3
NAMED_ROW_BONUS = 0.6
LIST_BONUS = 0.2
REPETITION = 0.5
NAME_WEIGHT = 2.0
TIME_WEIGHT = 0.5
NO_HEAD_SHARE = 0.6
NEAR_PLACE = 0.15
MOST_NAMES_ABSENT = 0.5
CODE_SHARE = 0.6
LEAST_OF_ROW = 0.5
CHANGE_SHARE = 0.6
_CODE_LABEL = re.compile(r"`[^`\n]{1,80}`:")
"""Before a statement, as in "Response `413`:": its number is a name, and no amount."""
_PASSIVE = re.compile(r"([^\W\d_]{2,30}) (?:is|are|was|were|be|gets?) ([^\W\d_]{2,30})")
_SENDER = "@"
"""In the place of a message, whose heading names who wrote it."""
_TIME_MARK = re.compile(
    r"\b(?:after|before|until|since|nach|vor|bis|seit)\b[^.,;:]{1,80}", re.IGNORECASE
)


class Relevance:
    """The score of each extract for one question."""

    def __init__(
        self, question: str, sources: Sequence[PromptSource], found: Sequence[Extract]
    ) -> None:
        self.question = question
        self.asked = extract_asked_terms(question)
        self.kinds: QuestionKinds = classify_question(question)
        self._counted = counting.find_counted(question)
        self._head = find_head(question) & self.asked
        self._names = (find_names(question) | find_codes(question)) & self.asked
        self._group = (
            find_group(question) & self.asked if self.kinds.depends_on_group else frozenset()
        )
        self._numbers = numbers_of(question)
        self._measured = {
            min(extract_key_terms(word)): kind
            for word, kind in counting.find_measured(terms(question, cut=False)).items()
        }
        self._labels = find_labels(question)
        self._texts = [extract.text for extract in found] if self._labels else []
        self._numerals = frozenset[str]().union(
            *(numbers_of(text) for text in self._texts), *(extract.ranged for extract in found)
        )
        self._versions = find_versions(question)
        self._sources = sources
        self._whole = extract_key_terms(question)
        self._changes = frozenset(
            rank
            for rank, source in enumerate(sources)
            if not self.kinds.changes and is_list_of_changes(source.place)
        )
        self._places = [extract_key_terms(source.place) for source in sources]
        self._around = collect_terms(found)
        self._around_rows = collect_terms([e for e in found if e.kind is not UnitKind.TABLE])
        self._named = collect_names(sources, self._around, self._names)
        self._everything = frozenset[str]().union(*self._around.values(), *self._places)
        pairs = () if self.kinds.steps else find_modifiers(question)
        self._modifiers = {one for one, noun in pairs if noun in self._everything}
        self._before = collect_before(found)
        versions = {source.version for source in sources}
        stated = [one for one in find_stated_numbers(question) if one in versions]
        self._selected = extract_key_terms(" ".join(stated))
        if self.asked - self._selected - (kinds := find_provisions(question)) - ASKING_TERMS:
            self.asked -= kinds - self._everything
        self._weights = _weigh(self.asked, found, self._places)
        if self.asked - self._selected - ASKING_TERMS:
            # All sources of a version that the question names have it: it was used to select them.
            self._weights |= dict.fromkeys(self._selected, 0.0)
        for term in self.asked & (self._names | TIME_TERMS):
            self._weights[term] *= NAME_WEIGHT if term in self._names else TIME_WEIGHT
        self._total = sum(self._weights.values()) or 1.0
        self._entries = _find_entries(found, self._whole)
        self._scores: dict[tuple[int, int], float] = {}

    def score(self, extract: Extract) -> float:
        """Return 0 to about 1.5: what the extract holds of the question, and whether it fits."""
        key = (extract.rank, extract.order)
        if key not in self._scores:
            weight = CHANGE_SHARE if self.is_past_change(extract) else 1.0
            self._scores[key] = weight * self._compute_score(extract)
        return self._scores[key]

    def is_past_change(self, extract: Extract) -> bool:
        """Return whether an extract is from a changelog that the question does not ask for."""
        return extract.rank in self._changes

    def share(self, extract: Extract) -> float:
        """Return from 0 to 1 how much of the question the extract and its place hold."""
        rank = extract.rank
        held = sum(self._weights[t] * self._credit(t, extract, rank) for t in self.asked)
        share = held / self._total
        has_head = not self._head or any(self._has_head(t, extract) for t in self._head)
        return share if has_head else share * NO_HEAD_SHARE

    def _has_head(self, term: str, extract: Extract) -> bool:
        """Return whether an extract is about what the question asks for, or asks how to do."""
        credit = self._credit(term, extract, extract.rank)
        if not self.kinds.steps:
            return credit >= BEFORE_CREDIT
        before = self._before.get((extract.rank, extract.order), frozenset())
        return credit >= PLACE_CREDIT or term in before

    def place(self, rank: int) -> float:
        """Return the share of the question in the place of a source."""
        return self._sum(self._places[rank])

    def closeness(self, rank: int) -> float:
        """Return from 0 to 1 how far the last heading of a source is about the question alone."""
        heading = extract_key_terms(self._sources[rank].place.split(" > ")[-1])
        return len(heading & self._whole) / len(heading) if heading else 0.0

    def coverage(self, chosen: Iterable[Extract]) -> float:
        """Return the share of the question that `chosen` and their places hold together."""
        held: set[str] = set()
        for extract in chosen:
            held |= extract.terms | self._places[extract.rank]
        return self._sum(held)

    def absent(self, chosen: Iterable[Extract]) -> frozenset[str]:
        """Return the asked terms that neither `chosen` nor their sources hold."""
        held: set[str] = set()
        for extract in chosen:
            held |= self._around[extract.rank] | self._places[extract.rank]
        return self.asked - held

    def unknown_names(self) -> frozenset[str]:
        """Return the names, codes and numbers of the question that no source holds.

        A question for yes or no is about its last word: "May I use it outdoors?".
        """
        point = (
            find_last_term(self.question, self._selected) if self.kinds.yes_or_no else frozenset()
        )
        unknown = (self._names | self._group | (point & self.asked)) - self._everything
        unknown |= find_unknown_role(self.question, self._everything)
        unknown |= self._modifiers - self._everything
        return unknown | {label.number for label in self._labels if self._is_unknown(label)}

    def _is_unknown(self, label: Label) -> bool:
        """Return whether the sources know neither the word of a label nor its number.

        "Eight people" is no route 8: a spelled number counts only before what the question counts.
        """
        if label.word in self._everything or label.number in self._numerals:
            return False
        return not any(
            following == label.counted and first == label.number
            for text in self._texts
            for first, following in pairwise(terms(text, cut=False))
        )

    def lacks_names(self, extract: Extract) -> bool:
        """Return whether the question names things of which an extract and its source know few."""
        rank = extract.rank
        held = extract.terms | self._places[rank]
        if self._group - held - self._around[rank]:
            # The deposit for a keg is none for a bottle.
            return True
        if extract.kind is UnitKind.TABLE:
            around = self._around_rows.get(rank, set()) | held
            own = self.asked - self._places[rank] - extract_key_terms(extract.head)
            is_of_another = len(own & extract.terms) < LEAST_OF_ROW * len(own)
            return is_of_another or not self._names <= held or not self._modifiers <= around
        absent = self._names - held - self._named[rank]
        return bool(absent) and len(absent) > MOST_NAMES_ABSENT * len(self._names)

    def holds_only_names(self, extract: Extract) -> bool:
        """Return whether an extract knows only the names in a question for yes or no.

        "Does the A4 have a crane?" is not answered by the price of the A4.
        """
        others = self.asked - self._names - self._numbers - KIND_TERMS
        if not others or not self._names or not self.kinds.yes_or_no:
            return False
        return not any(self._credit(term, extract, extract.rank) for term in others)

    def is_about_another_version(self, extract: Extract) -> bool:
        """Return whether an extract and its place name a version, but none of the question."""
        if not self._versions:
            return False
        place = self._sources[extract.rank].place
        named = find_versions(f"{place}\n{extract.text}")
        named = named or find_stated_versions(place.split(" > ")[-1])
        return bool(named) and named.isdisjoint(self._versions)

    def names_of(self, extract: Extract) -> frozenset[str]:
        """Return the asked terms in the extract and its place."""
        return self.asked & (extract.terms | self._places[extract.rank])

    def only_in_place(self, extract: Extract) -> frozenset[str]:
        """Return the asked terms in the place but not in the extract."""
        return self.asked & (self._places[extract.rank] - extract.terms)

    def needs_place(self, extract: Extract) -> bool:
        """Return whether only the place of an extract holds the kind of thing that is asked for."""
        place = self._sources[extract.rank].place
        if self.kinds.person and _SENDER in place:
            return True
        if (
            extract.kind is UnitKind.TABLE
            or not self.kinds.may_stand_in_heading
            or self.fits(extract)
        ):
            return False
        return self.kinds.fits(place)

    def fits(self, extract: Extract) -> bool:
        """Return whether the extract holds the kind of thing that is asked for."""
        wording = self._without_question(extract)
        return self.kinds.fits(wording, self._setting(extract))

    def is_ruled_out(self, extract: Extract) -> bool:
        """Return whether the extract lacks what every answer to the question has."""
        if self._is_beside_the_point(extract):
            return True
        wording = self._without_question(extract)
        ruled_out = self.kinds.rules_out(wording, self._setting(extract))
        return ruled_out and not self.needs_place(extract)

    def _is_beside_the_point(self, extract: Extract) -> bool:
        """Return whether the number of an extract is not that of the asked thing."""
        if self.kinds.duration and self._only_marks_time(extract):
            return True
        if counting.lacks_unit(self.question, f"{extract.text}\n{self._setting(extract)}"):
            return True
        if self.kinds.steps and self._does_it_to_something_else(extract):
            return True
        if extract.kind is UnitKind.TABLE:
            return False
        if self.kinds.price and states_no_sum(extract.text):
            # "Postage is free" is no price of the parcel.
            subject = self.asked - ASKING_TERMS
            return bool(subject) and extract.terms.isdisjoint(subject)
        counted = self._counted
        return bool(counted) and counting.counts_something_else(extract.text, counted, self._whole)

    def _does_it_to_something_else(self, extract: Extract) -> bool:
        """Return whether the asked verb is done to something else: "A job is deleted ..."."""
        done = [
            (extract_key_terms(subject), extract_key_terms(verb))
            for subject, verb in _PASSIVE.findall(extract.text)
        ]
        subjects = [subject for subject, verb in done if verb & self._head]
        own = self.asked & extract.terms
        return bool(subjects) and own <= self._head and not any(s & self.asked for s in subjects)

    def _only_marks_time(self, extract: Extract) -> bool:
        """Return whether the asked terms only date something else: "after the holidays"."""
        held = self.asked & extract.terms
        without = _TIME_MARK.sub(" ", extract.text)
        return (
            bool(held) and without != extract.text and held.isdisjoint(extract_key_terms(without))
        )

    def _compute_score(self, extract: Extract) -> float:
        score = self.share(extract) * (1 + RANK_SHARE / (1 + extract.rank))
        if extract.kind is UnitKind.CODE and not self.kinds.steps:
            score *= CODE_SHARE
        if extract.kind is UnitKind.TABLE:
            score += self._bonus_of_row(extract)
        if self.is_repetition(extract):
            score *= REPETITION
        if score and self.kinds.asks_for_thing and self.is_ruled_out(extract):
            return score * REPETITION
        return score + FIT_BONUS if score and self.fits(extract) else score

    def is_repetition(self, extract: Extract) -> bool:
        """Return whether an extract only says the question again, and leads to nothing."""
        if not extract.terms or extract.leads:
            return False
        return extract.terms <= self._whole and not self.fits(extract)

    def _bonus_of_row(self, row: Extract) -> float:
        if self.is_entry(row):
            return NAMED_ROW_BONUS if self._names and self._names <= row.terms else ROW_BONUS
        head = split_cells(row.head.partition("\n")[0])[0]
        return 0.0 if self._whole.isdisjoint(extract_key_terms(head)) else LIST_BONUS

    def is_entry(self, row: Extract) -> bool:
        """Return whether the question names a row: no other row holds more of the question."""
        return (row.rank, row.order) in self._entries

    def _credit(self, term: str, extract: Extract, rank: int) -> float:
        if term in extract.terms or self._is_measured(term, extract):
            return 1.0
        if term in self._places[rank]:
            return PLACE_CREDIT
        if term in self._before.get((rank, extract.order), frozenset()):
            return BEFORE_CREDIT
        # What another row says is not said of this one.
        is_row = extract.kind is UnitKind.TABLE
        around = self._around_rows.get(rank, set()) if is_row else self._around[rank]
        is_around = term in around or term in self._named[rank]
        return AROUND_CREDIT if is_around else 0.0

    def _is_measured(self, term: str, extract: Extract) -> bool:
        is_about = self.names_of(extract) - self._measured.keys()
        return bool(is_about) and counting.states_measure(self._measured.get(term), extract.text)

    def _setting(self, extract: Extract) -> str:
        if extract.kind is not UnitKind.TABLE:
            return ""
        return f"{extract.head}\n{self._sources[extract.rank].place}"

    def _without_question(self, extract: Extract) -> str:
        """Return the text without the numbers that the question itself names."""
        wording: str = extract.text
        if extract.kind in (UnitKind.ITEM, UnitKind.SENTENCE):
            wording = _CODE_LABEL.sub(" ", wording)
        for number in self._numbers:
            wording = wording.replace(number, " ")
        return wording

    def _sum(self, held: Iterable[str]) -> float:
        return sum(self._weights[term] for term in self.asked & set(held)) / self._total


def _find_entries(found: Sequence[Extract], asked: frozenset[str]) -> frozenset[tuple[int, int]]:
    """Return the rows that hold more asked terms than the other rows of their table."""
    tables: dict[tuple[int, str], list[tuple[int, Extract]]] = {}
    for extract in found:
        if extract.kind is UnitKind.TABLE:
            cells = extract_key_terms(" | ".join(split_cells(extract.text)[:2]))
            held = len(asked & ((cells & extract.terms) | extract.ranged))
            tables.setdefault((extract.rank, extract.head), []).append((held, extract))
    entries: set[tuple[int, int]] = set()
    for rows in tables.values():
        counts = [held for held, _ in rows]
        best = max(counts)
        if best and (len(rows) == 1 or min(counts) < best):
            entries |= {(row.rank, row.order) for held, row in rows if held == best}
    return frozenset(entries)


def _weigh(
    asked: frozenset[str], found: Sequence[Extract], places: Sequence[frozenset[str]]
) -> dict[str, float]:
    counts = Counter(
        term for extract in found for term in (extract.terms | places[extract.rank]) & asked
    )
    whole = math.log(1 + len(found)) or 1.0
    return {term: 0.3 + math.log(1 + len(found) / (1 + counts[term])) / whole for term in asked}
