"""Says why a passage contradicts a requirement: by its polarity, or by a period.

A passage that has all concepts of a requirement opposes a ban that it permits or obliges, and a
duty or a right that it forbids. It must be plain, hardly longer than the requirement: what a long
sentence with exclusions means is left to the model of verdicts. Any passage about the same opposes
a period: longer than the one within which something must happen, or shorter than the one for which
it must last.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

from compliance.verdicts.matching import RequirementQuery
from compliance.verdicts.passages import PreparedDocument
from compliance.verdicts.polarity import ClausePolarity
from compliance.wording.cues import RuleKind, find_cues, split_words
from compliance.wording.thesaurus import is_concept

_UNIT_HOURS: Mapping[str, float] = {
    "hour": 1, "hours": 1, "day": 24, "days": 24, "week": 168, "weeks": 168, "month": 730,
    "months": 730, "year": 8760, "years": 8760, "stunde": 1, "stunden": 1, "tag": 24, "tage": 24,
    "tagen": 24, "woche": 168, "wochen": 168, "monat": 730, "monate": 730, "monaten": 730,
    "jahr": 8760, "jahre": 8760, "jahren": 8760,
}  # fmt: skip
_FURTHER_UNITS: Mapping[float, str] = {
    1: "hodina hodiny hodin hodín godzina godziny godzin heure heures hora horas",
    24: "den dny dnů dní dnech deň dni dzień jour jours día días",
    168: "týden týdny týdnů týždeň týždne týždňov tydzień tygodnie tygodni semaine semaines "
    "semana semanas",
    730: "měsíc měsíce měsíců mesiac mesiace mesiacov miesiąc miesiące miesięcy mois mes meses",
    8760: "rok roky let roku rokov lata lat an ans année années año años",
}
"""In Czech, Slovak, Polish, French and Spanish."""
_HOURS = {
    **{name: hours for hours, names in _FURTHER_UNITS.items() for name in names.split()},
    **_UNIT_HOURS,
}
_SPELLED = {
    word: number
    for words in (
        "one two three four five six seven eight nine ten eleven twelve",
        "einem zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
        "jeden dva tři čtyři pět šest sedm osm devět deset jedenáct dvanáct",
        "jednoho dvou tří čtyř pěti šesti sedmi osmi devíti deseti jedenácti dvanácti",
        "jeden dva tri štyri päť šesť sedem osem deväť desať jedenásť dvanásť",
        "jednego dwóch trzech czterech pięciu sześciu siedmiu ośmiu dziewięciu dziesięciu "
        "jedenastu dwunastu",
    )
    for number, word in enumerate(words.split(), start=1)
}
_LEAST = frozenset(
    {"least", "mindestens", "minimum", "earlier", "alespoň", "nejméně", "minimálně", "najmenej",
     "minimálne", "najmniej", "przynajmniej", "moins", "menos", "mínimo"}
)  # fmt: skip
_FILLERS = frozenset({"working", "business", "calendar", "full"})
_NUMBER = re.compile(r"\d{1,6}\Z")
_LEAST_SHARE = 0.7
_PLAIN = 1.5
"""A plain passage has at most this many times the words of the requirement."""
_LIMITING = frozenset({"without", "ohne", "bez", "sans", "sin"})
_LEAST_SHARE_OF_PERIODS = 0.4
_BAN, _DUTY, _PERMISSION, _STATEMENT, _NEGATED = range(5)


def find_opposition(query: RequirementQuery, document: PreparedDocument, at: int) -> str:
    """Return why passage `at` contradicts a requirement; empty: it does not."""
    share = share_words(query, document, document.joint_features[at])
    if share >= _LEAST_SHARE_OF_PERIODS:
        period = compare_periods(query.text, document.passages[at].text)
        if period:
            return period
    concepts = frozenset(filter(is_concept, query.features))
    is_same = share >= _LEAST_SHARE and concepts <= document.joint_features[at]
    if not (is_same and is_plain(query, document, at)):
        return ""
    if query.kind in {None, RuleKind.DEFINITION}:
        return ""
    words = split_words(document.passages[at].text)
    if find_cues(words, document.language, "exception"):
        return ""  # a passage with an exception may both forbid and permit
    clauses = _choose_clauses(query, document.clauses[at])
    is_denied = _has_denial(document.passages[at].text, document.language)
    if not clauses:
        return ""
    if query.kind is RuleKind.BAN:
        is_permitted = not is_denied and all(map(_permits, clauses))
        return "it permits what is forbidden" if is_permitted else ""
    word = "required" if query.kind is RuleKind.DUTY else "permitted"
    is_forbidden = all(map(_forbids, clauses))
    return f"it forbids what is {word}" if is_forbidden else ""


def is_plain(query: RequirementQuery, document: PreparedDocument, at: int) -> bool:
    """Return whether passage `at` is hardly longer than the requirement."""
    return len(document.passages[at].text.split()) <= _PLAIN * len(query.text.split())


def compare_periods(required: str, given: str) -> str:
    """Return why a period of one text breaks that of the other; empty: none does."""
    wanted, found = list_periods(required), list_periods(given)
    if len(wanted) != 1 or not found:
        return ""
    words = {word.text for word in split_words(required)}
    if not words.isdisjoint(_LEAST):
        is_broken = max(found) < wanted[0]
        return "its period is shorter than required" if is_broken else ""
    return "its period is longer than allowed" if min(found) > wanted[0] else ""


def list_periods(text: str) -> tuple[float, ...]:
    """Return the periods of a text in hours."""
    words = [word.text for word in split_words(text) if word.text not in _FILLERS]
    found = []
    for number, unit in pairwise(words):
        if unit in _HOURS:
            count = float(number) if _NUMBER.match(number) else _SPELLED.get(number, 0)
            if count:
                found.append(count * _HOURS[unit])
    return tuple(found)


def share_words(
    query: RequirementQuery, document: PreparedDocument, features: frozenset[str]
) -> float:
    """Return the share of a requirement's features, by information; numbers are left out."""
    left_out = _HOURS.keys() | _SPELLED.keys()
    own = [one for one in sorted(query.features) if not one.isdigit() and one not in left_out]
    weights = {one: document.weigh(one) for one in own}
    total = sum(weights.values())
    return sum(weights[one] for one in weights if one in features) / total if total else 0.0


def _choose_clauses(
    query: RequirementQuery, clauses: Sequence[ClausePolarity]
) -> list[ClausePolarity]:
    """Return the clauses with the predicate; otherwise the one that shares most concepts."""
    own = [one for one in clauses if query.predicate in one.features]
    if own:
        return own
    wanted = {one for one in query.features if is_concept(one)}
    best = max(clauses, key=lambda one: len(wanted & one.features), default=None)
    return [best] if best is not None and wanted & best.features else []


def _permits(clause: ClausePolarity) -> bool:
    values = clause.values
    is_positive = values[_PERMISSION] or values[_DUTY]
    return bool(is_positive) and not values[_BAN]


def _forbids(clause: ClausePolarity) -> bool:
    return bool(clause.values[_BAN])


def _has_denial(text: str, language: str) -> bool:
    """Return whether a passage negates; "without" only limits."""
    cues = find_cues(split_words(text), language, "negation")
    return any(text[one.start : one.end].lower() not in _LIMITING for one in cues)
