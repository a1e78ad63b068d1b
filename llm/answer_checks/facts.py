"""Finds numbers, names and negations of a claim that its evidence does not have.

A *name* is a word with a capital letter within a sentence. A negation denies the next words of its
clause. A claim differs from its evidence if it denies words that the evidence only affirms, or
affirms words that the most similar sentence of the evidence denies. The findings are evidence for a
judge: a claim can be correct in other words.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from citations.claims import marker, sentences, without_citations
from llm.offline.phrases import FUNCTION_WORDS
from llm.offline.support import foreign_facts

_WORD = r"[^\W_]+(?:['\u2019][^\W\d_]+)*"
_TOKEN = re.compile(rf"{_WORD}|[|,.;:!?()\u2026\u3002]")
_SENTENCE_END = re.compile(
    r"(?<=[.!?;])\s|(?<=[a-z]\.)(?=[A-Z])|\n(?=[ \t]{0,20}(?:[-*+|#>\n]|\d{1,3}[.)]\s))"
)
"""A line break within a sentence does not end it."""
_ENUMERATOR = re.compile(r"(?:\A|(?<=[.:!?;*]\s)|(?<=\n))\d{1,2}[.)](?=\s|\Z)")
_ORDINAL = re.compile(r"(?<=\d)(?:st|nd|rd|th)\b")
_BOLD = re.compile(r"\*\*[^*]*\*\*")
_NAME = re.compile(r"[^\W_]+(?:['\u2019.&-][^\W_]+)*")
_RUNS_ON = re.compile(r",?[ /-]\(?")
_PARTS = re.compile(r"[^\W_]+")
_STEM = 5
_NEGATIONS_WORDS = (
    "not no never none nobody nothing neither nor cannot without "
    "nicht kein keine keinen keinem keiner nie niemals ohne "
    "nunca ningún ninguna ninguno sin ne pas jamais aucun aucune sans "
    "non mai nessun nessuna nessuno senza não nem nenhum nenhuma sem "
    "не нет нельзя никогда без ні немає ніколи"
)
_NEGATIONS = frozenset(_NEGATIONS_WORDS.split())
_LIKE_NEGATIONS_WORDS = (
    "lack lacks lacking lacked unable fail fails failed except hardly rarely seldom unless prevent "
    "prevents prohibited forbidden refused denied unlike false untrue stop stopped instead however "
    "unsupported unavailable impossible invalid only"
)
_LIKE_NEGATIONS = frozenset(_LIKE_NEGATIONS_WORDS.split())
"""Words in the evidence that have the same meaning as a negation."""
_AFTER_AN_IDIOM_WORDS = (
    "but only just sure necessarily know doubt merely simply matter least mind worry problem "
    "believe think aware"
)
_AFTER_AN_IDIOM = frozenset(_AFTER_AN_IDIOM_WORDS.split())
"""Words after "not" or "no" that make an idiom, which denies nothing of the claim."""
_ORDINAL_WORDS = "zeroth first second third fourth fifth sixth seventh eighth ninth tenth"
_ORDINALS = {word: str(number) for number, word in enumerate(_ORDINAL_WORDS.split())}
_CLAIM_REACH, _EVIDENCE_REACH, _AFFIRM_REACH = 2, 4, 1
"""How many words with a meaning a negation denies."""
_SHARED_TO_AFFIRM = 0.7
_LEAST_TO_AFFIRM = 3


@dataclass(frozen=True, slots=True)
class _Sentence:
    """The stems of a sentence, those that are denied, and whether it contains a negation."""

    stems: frozenset[str]
    denied: tuple[frozenset[str], ...]
    is_negative: bool

    @property
    def affirmed(self) -> frozenset[str]:
        return self.stems.difference(*self.denied)


def find_differences(claim: str, evidence: str, question: str = "") -> tuple[str, ...]:
    """Return the statements of a claim that neither evidence nor question contain, in short."""
    text = without_citations(claim)
    if _fold(text[len(marker(text)) :]) in _fold(evidence):
        return ()
    statement = _ENUMERATOR.sub(" ", text[len(marker(text)) :])
    known = f"{evidence}\n{question}"
    facts = foreign_facts(_plain_numbers(statement), f"{_plain_numbers(known)} {_ordinals(known)}")
    return (*facts, *_find_names(statement, known), *_find_negations(statement, evidence))


def _fold(text: str) -> str:
    return "".join(text.split())


def _plain_numbers(text: str) -> str:
    return _ORDINAL.sub("", text).replace("-", " ")


def _ordinals(text: str) -> str:
    return " ".join(_ORDINALS[word] for word in _words(text) if word in _ORDINALS)


def _words(text: str) -> Iterator[str]:
    return (word.casefold() for word in _PARTS.findall(text))


def _find_names(statement: str, known: str) -> Iterator[str]:
    folded = known.casefold()
    stems = {word[:_STEM] for word in _words(known)}
    initials = "".join(word[0] for word in _PARTS.findall(known) if word[0].isupper()).casefold()
    for name in _names(statement):
        word = name.removesuffix("'s").removesuffix("\u2019s").casefold()
        letters = "".join(sign for sign in word if sign.isalnum())
        parts = list(_words(word))
        is_known = all(_is_known(part, stems, folded) for part in parts)
        if not (is_known or letters in folded or letters in initials):
            yield name


def _is_known(part: str, stems: set[str], folded: str) -> bool:
    return len(part) < 3 or part in FUNCTION_WORDS or part[:_STEM] in stems or part in folded


def _names(text: str) -> Iterator[str]:
    """Yield the capitalised words that follow another word directly, outside of bold headings."""
    if _capitalises_nouns(text):
        return
    for sentence in sentences(" ".join(_BOLD.sub(" : ", text).split())):
        end = None
        for word in _NAME.finditer(sentence):
            follows = end is not None and _RUNS_ON.fullmatch(sentence, end, word.start())
            if follows and word[0][0].isupper() and len(word[0]) > 2:
                yield word[0]
            end = word.end()


def _capitalises_nouns(text: str) -> bool:
    """Return whether a text is German: its capitalised nouns are not names."""
    return len({"der", "die", "das", "und", "ein", "eine", "ist", "nicht"} & set(_words(text))) > 1


def _find_negations(statement: str, evidence: str) -> Iterator[str]:
    parts = _SENTENCE_END.split(evidence)
    strict = [_read(part, _AFFIRM_REACH) for part in parts]
    broad = [_read(part, _EVIDENCE_REACH, like=True) for part in parts]
    for sentence in sentences(" ".join(statement.split())):
        claim = _read(sentence, _CLAIM_REACH)
        if claim.is_negative and _denies_more(claim, broad):
            yield "a negation that the source does not have"
        elif not claim.is_negative and _affirms_more(claim, strict):
            yield "the source denies this"


def _denies_more(claim: _Sentence, given: Sequence[_Sentence]) -> bool:
    """Return whether a negation of the claim denies only what the evidence affirms."""
    affirmed = frozenset().union(*(one.affirmed for one in given))
    denied = frozenset().union(*(group for one in given for group in one.denied))
    return any(group & affirmed and not group & denied for group in claim.denied)


def _affirms_more(claim: _Sentence, given: Sequence[_Sentence]) -> bool:
    shared = [len(claim.stems & one.stems) for one in given]
    top = max(shared, default=0)
    if top < max(_LEAST_TO_AFFIRM, _SHARED_TO_AFFIRM * len(claim.stems)):
        return False
    affirmed = frozenset().union(*(one.affirmed for one in given))
    best = [one for one, count in zip(given, shared, strict=True) if count == top]
    return any(
        bool(group) and group <= claim.stems and not group & affirmed
        for one in best
        for group in one.denied
    )


def _read(text: str, reach: int, *, like: bool = False) -> _Sentence:
    """Return a sentence with the words that its negations deny.

    With `like`, words with the meaning of a negation count as one.
    """
    tokens = [token.casefold() for token in _TOKEN.findall(text)]
    stems: set[str] = set()
    denied: list[frozenset[str]] = []
    is_negative = False
    for is_clause, clause in groupby(tokens, key=lambda token: token[0].isalnum()):
        if is_clause:
            for group in _read_clause(list(clause), reach, like, stems):
                is_negative = True
                denied += [group] if group else []
    return _Sentence(frozenset(stems), tuple(denied), is_negative)


def _read_clause(
    words: Sequence[str], reach: int, like: bool, stems: set[str]
) -> Iterable[frozenset[str]]:
    """Return the stems that each negation of a clause denies; add all stems to `stems`."""
    found: list[set[str]] = []
    left = 0
    for place, word in enumerate(words):
        if _is_negation(words, place, like=like):
            found.append(set())
            left = reach
        elif word not in FUNCTION_WORDS and word not in _NEGATIONS:
            stems.add(word[:_STEM])
            if left:
                found[-1].add(word[:_STEM])
                left -= 1
    return [frozenset(group) for group in found]


def _is_negation(words: Sequence[str], place: int, *, like: bool) -> bool:
    word = words[place]
    following = words[place + 1] if place + 1 < len(words) else ""
    if like and word in _LIKE_NEGATIONS:
        return True
    if word in _NEGATIONS:
        is_answer = word in ("no", "nein", "non") and not place and not following
        return like or not (following in _AFTER_AN_IDIOM or is_answer)
    return len(word) > 3 and word.endswith(("n't", "n\u2019t"))
