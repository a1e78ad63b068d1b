"""Measures how well the language of a text is detected: the suite `language`.

The folder contains `texts.jsonl` (`text`, `lang`, and optionally `kind` and `source`),
`questions.jsonl` or `queries.jsonl` (`query`, `lang`), or `tasks.jsonl` (`query`, `history` with
`speaker` and `text`; `lang` is `en` where it is missing). `zh-Hant` counts as `zh`, `nb` and `nn`
as `no`.

Texts are detected without context, by kind and by length. Short turns, of at most six words, are
detected again by the lang agent inside a conversation: a task's own history, or else two longer
texts of the same source and language. Texts of at most five words are detected once more at a desk
with documents in their language, and at one with documents in English.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from agents.question.lang import SHORT_WORDS, LangAgent, Reads
from cli.evaluation.questions import UnknownFormatError, rows
from envelope.conversation import Turn
from envelope.outcome import Wrote
from knowledge.language.detector import ScriptAndNgramDetector
from knowledge.language.port import Detector
from knowledge.language.scripts import CANDIDATES

Figures = dict[str, object]

SHORT_TURN_WORDS = 6
_FILES = ("texts.jsonl", "questions.jsonl", "queries.jsonl", "tasks.jsonl")
_LENGTHS = ((1, "1"), (3, "2-3"), (6, "4-6"), (10, "7-10"))
_SAME = {"zh-Hant": "zh", "nb": "no", "nn": "no"}
_UNSPACED = frozenset({"zh", "ja", "th"})
_CHARACTERS_A_WORD = 2


@dataclass(frozen=True, slots=True)
class LabelledText:
    """A text with its known language, and the turns before it."""

    text: str
    language: str
    kind: str
    source: str
    history: tuple[Turn, ...] = ()

    @property
    def words(self) -> int:
        """The number of words; in a script without spaces, two characters count as one."""
        if self.language in _UNSPACED:
            return max(len(self.text) // _CHARACTERS_A_WORD, 1)
        return len(self.text.split())


async def evaluate(data: Path, *, detector: Detector | None = None) -> Figures:
    """Return the figures of a folder; raises `UnknownFormatError` for another kind of folder."""
    chosen = ScriptAndNgramDetector() if detector is None else detector
    spoken = _read(data)
    turns = [turn for turn in _in_conversation(spoken) if turn.words <= SHORT_TURN_WORDS]
    chosen.detect(spoken[0].text)  # loads the model before the measurement
    started = perf_counter()
    alone = [
        chosen.detect(labelled_text.text).language == labelled_text.language
        for labelled_text in spoken
    ]
    milliseconds = (perf_counter() - started) * 1000 / len(spoken)
    in_context = [await _detect_correctly(turn, chosen) for turn in turns]
    short = [
        labelled_text
        for labelled_text in spoken
        if labelled_text.words <= SHORT_WORDS and labelled_text.language in CANDIDATES
    ]
    return {
        "texts": len(spoken),
        "without_context": _accuracies(spoken, alone),
        "short_turns_in_a_conversation": _accuracies(turns, in_context),
        "short_texts_and_documents": {
            "in_their_language": await _detect_short(short, chosen, None),
            "in_english": await _detect_short(
                [labelled_text for labelled_text in short if labelled_text.language != "en"],
                chosen,
                "en",
            ),
        },
        "milliseconds_a_text": round(milliseconds, 3),
    }


def _read(data: Path) -> list[LabelledText]:
    paths = [data / name for name in _FILES if (data / name).is_file()]
    spoken = [one for path in paths for row in rows(path) if (one := _spoken(row, path.stem))]
    if not spoken:
        raise UnknownFormatError(
            f"expected {' or '.join(_FILES)} with texts and their languages in {data}, found "
            f"{sorted(path.name for path in data.iterdir()) if data.is_dir() else 'no folder'}"
        )
    return spoken


def _spoken(row: Mapping[str, Any], stem: str) -> LabelledText | None:
    text = row.get("text", row.get("query"))
    language = row.get("lang", "en" if "history" in row else None)
    if not isinstance(text, str) or not isinstance(language, str):
        return None
    return LabelledText(
        text=text,
        language=_SAME.get(language, language),
        kind=str(row.get("kind") or stem),
        source=str(row.get("source") or stem),
        history=tuple(
            Turn(
                speaker="user" if turn.get("speaker") == "user" else "assistant",
                text=str(turn.get("text") or ""),
            )
            for turn in row.get("history") or ()
        ),
    )


def _in_conversation(spoken: Sequence[LabelledText]) -> Iterable[LabelledText]:
    """Give each text a history: its own, or two longer texts of its source and language."""
    longer: dict[tuple[str, str], list[str]] = defaultdict(list)
    for labelled_text in spoken:
        if labelled_text.words > SHORT_TURN_WORDS:
            longer[labelled_text.source, labelled_text.language].append(labelled_text.text)
    for place, labelled_text in enumerate(spoken):
        others = longer[labelled_text.source, labelled_text.language]
        if labelled_text.history:
            yield labelled_text
        elif len(others) > 1:
            turns = (others[place % len(others)], others[(place + 1) % len(others)])
            history = tuple(Turn(speaker="user", text=text) for text in turns)
            yield LabelledText(
                labelled_text.text,
                labelled_text.language,
                labelled_text.kind,
                labelled_text.source,
                history,
            )


async def _detect_correctly(turn: LabelledText, detector: Detector) -> bool:
    reads = Reads(text=turn.text, history=turn.history)
    outcome = await LangAgent(detector=detector).work(reads)
    return isinstance(outcome, Wrote) and outcome.writes.language == turn.language


async def _detect_short(
    spoken: Sequence[LabelledText], detector: Detector, documents: str | None
) -> dict[str, float]:
    """Return the share of correct results at a desk whose documents are in one language.

    `documents` is that language; None: the language of each text.
    """
    right: list[bool] = []
    for labelled_text in spoken:
        languages = {labelled_text.language if documents is None else documents: 1.0}

        async def read(
            _groups: tuple[str, ...], probabilities: Mapping[str, float] = languages
        ) -> Mapping[str, float]:
            return probabilities

        agent = LangAgent(detector=detector, read_languages=read)
        outcome = await agent.work(Reads(text=labelled_text.text))
        right.append(
            isinstance(outcome, Wrote) and outcome.writes.language == labelled_text.language
        )
    return _share(right)


def _accuracies(spoken: Sequence[LabelledText], right: Sequence[bool]) -> Figures:
    """Return the shares of correct results: of all, of the supported languages, and by group."""
    known = [
        ok
        for labelled_text, ok in zip(spoken, right, strict=True)
        if labelled_text.language in CANDIDATES
    ]
    groups: dict[str, dict[str, list[bool]]] = {"kind": {}, "words": {}, "language": {}}
    for labelled_text, ok in zip(spoken, right, strict=True):
        groups["kind"].setdefault(f"{labelled_text.kind} ({labelled_text.source})", []).append(ok)
        groups["words"].setdefault(_length(labelled_text.words), []).append(ok)
        groups["language"].setdefault(labelled_text.language, []).append(ok)
    return {
        "all": _share(right),
        "supported_languages": _share(known),
        **{
            f"by_{group}": {name: _share(rights) for name, rights in sorted(by_name.items())}
            for group, by_name in groups.items()
        },
    }


def _length(words: int) -> str:
    return next((name for most, name in _LENGTHS if words <= most), "11+")


def _share(right: Sequence[bool]) -> dict[str, float]:
    accuracy = round(sum(right) / len(right), 4) if right else 0.0
    return {"texts": len(right), "accuracy": accuracy}
