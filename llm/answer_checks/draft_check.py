"""Selects the part of an answer that may be shown before it is complete and judged.

Only finished sentences are shown: those that another one follows. A sentence without a citation
waits as long as a later citation of its block may still cover it. A sentence with any fault that
the checks without a model find is omitted; the judge decides about it later.
"""

import re
from collections.abc import Callable, Sequence

from citations.citing import cite_units, is_bare_yes_or_no, is_lead, join_units
from citations.claims import Unit, UnitKind, split_units, without_citations
from citations.removal import SourcedText, remove_cited_units
from llm.answer_checks.claims import CheckedAnswer, CheckedClaim, collect_claims

CERTAIN_CHARACTERS = 40
"""The language of a shorter text is uncertain."""
_OPEN_CITATION = re.compile(
    r"(?<!\s)\s*+[\[\u3010\uff3b][^\[\]\u3010\u3011\uff3b\uff3d\n]{0,40}+\Z"
)

LanguageOf = Callable[[str], str | None]
"""Returns the language of a text, ISO 639-1, or None when it cannot be determined."""


def select_finished(written: str) -> str:
    """Return the finished sentences of an answer that is being written, in Markdown.

    Each result is the beginning of the next one, except that a citation on a line below a block
    may add sentences to that block.
    """
    units = split_units(_OPEN_CITATION.sub("", written))
    if len(units) < 2:
        return ""
    finished, last = units[:-1], units[-1]
    block = finished[-1].block
    is_open = last.block == block or last.kind is UnitKind.CITATION
    held = _find_held(finished, block) if is_open else len(finished)
    return join_units(finished[:held])


def _find_held(units: Sequence[Unit], block: int) -> int:
    """Return the position of the first sentence of an open block without a citation."""
    cites = cite_units(units)
    held = (
        place
        for place, unit in enumerate(units)
        if unit.block == block and not cites[place] and _states(unit)
    )
    return next(held, len(units))


def _states(unit: Unit) -> bool:
    is_lead_over = is_lead(unit) or is_bare_yes_or_no(unit)
    return unit.kind is not UnitKind.CITATION and not is_lead_over


def check_draft(answer: CheckedAnswer, language_of: LanguageOf | None) -> SourcedText | None:
    """Return the part of an incomplete answer that may be shown, or None.

    An answer in another language than the user's is not shown. If the sources are in another
    language, nothing is shown until the language of the answer is certain.
    """
    claims = collect_claims(answer)
    sound = [claim for claim in claims if not claim.fault]
    if not any(claim.cites for claim in sound):
        return None
    if not _is_in_language(answer.language, sound, language_of):
        return None
    faulty = {place for claim in claims if claim.fault for place in claim.places}
    whole = SourcedText(answer.text, answer.used)
    return remove_cited_units(whole, faulty, answer.references, answer.context)


def _is_in_language(
    language: str, claims: Sequence[CheckedClaim], language_of: LanguageOf | None
) -> bool:
    if language_of is None:
        return True
    own = " ".join(without_citations(claim.text) for claim in claims if not claim.is_quoted)
    if len(own) < CERTAIN_CHARACTERS:
        return not any(claim.foreign for claim in claims)
    return language_of(own) in (None, language)
