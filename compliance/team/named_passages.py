"""The passages of reviewed documents under short ids, and which of them a model reads."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from compliance.requirements.requirement import TextPlace
from compliance.team.prepared import prepare_document
from compliance.team.units import DocumentUnits
from compliance.verdicts.deciding import list_searched
from compliance.verdicts.matching import make_query, match_passages
from compliance.verdicts.passages import split_passages
from compliance.verdicts.verdict import VerdictEvidence
from llm.tasks.specialists.material import TextUnit

_PER_REQUIREMENT = 6
_MOST_SHOWN = 40


@dataclass(frozen=True, slots=True)
class NamedPassages:
    """The passages of the documents of a review; the place of each is found by its id."""

    texts: tuple[TextUnit, ...]
    places: dict[str, TextPlace]
    language: str

    def find_evidence(self, names: Iterable[str]) -> tuple[VerdictEvidence, ...]:
        """Return the passages of these ids as evidence; ids that do not exist are left out."""
        texts = {one.id: one.text for one in self.texts}
        return tuple(
            VerdictEvidence(place=self.places[name], text=texts[name], score=0.0)
            for name in dict.fromkeys(names)
            if name in texts
        )

    def list_searched(self, statement: str, language: str) -> tuple[TextPlace, ...]:
        """Return the places that most concern a requirement: those that were read in vain."""
        document = prepare_document(self.texts, self.language)
        match = match_passages(make_query(statement, language), document)
        return tuple(self.places[one.unit_id] for one in list_searched(document, match))

    def choose_shown(self, statements: Iterable[str], language: str) -> tuple[str, ...]:
        """Return the ids of the passages that most concern these requirements."""
        document = prepare_document(self.texts, self.language)
        chosen: dict[int, None] = {}
        orders = [
            match_passages(make_query(one, language), document).order[:_PER_REQUIREMENT]
            for one in statements
        ]
        for rank in range(_PER_REQUIREMENT):
            for order in orders:
                if rank < len(order) and len(chosen) < _MOST_SHOWN:
                    chosen.setdefault(order[rank])
        return tuple(self.texts[at].id for at in sorted(chosen))


def name_passages(documents: Sequence[DocumentUnits]) -> NamedPassages:
    """Return the sentences and items of documents, named `p1`, `p2` and so on in their order."""
    passages = [one for document in documents for one in split_passages(document.units)]
    texts, places = [], {}
    for number, one in enumerate(passages, start=1):
        if not one.text.strip():
            continue
        name = f"p{number}"
        places[name] = one.place
        heading = " > ".join(one.place.heading_path)
        texts.append(TextUnit(id=name, heading=heading, text=one.text))
    language = documents[0].language if documents else "en"
    return NamedPassages(tuple(texts), places, language)
