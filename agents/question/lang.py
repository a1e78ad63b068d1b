"""Detects the language of the user."""

from collections.abc import Mapping
from typing import Self

from pydantic import BaseModel, Field

from agents.agent import Agent, AgentParts, MayAsk, ProgressStep
from envelope.conversation import Preferences, Turn
from envelope.outcome import HopOutcome, Wrote
from envelope.role import Role
from envelope.specialists import ReviewScope
from envelope.texts import primary_of, read_tag
from knowledge.language.corpus_languages import ReadLanguages
from knowledge.language.port import Detector
from knowledge.language.scripts import choose_script

_USER_TURN = 1.0
_ASSISTANT_TURN = 0.25
_PREFERENCE = 0.5
_FADING = 0.8
"""The weight of a turn, relative to the turn after it."""
SHORT_WORDS = 5
"""For a text of at most this many words, the languages of the documents are taken into account."""
DOCUMENTS_SHARE = 0.4
"""The probability that a short text is in a language of the documents."""
WORD_SHARE = 0.9
"""The corresponding probability for a single word; words such as "token" and "export" exist in many
languages.
"""
_BY_DEFAULT = 0.1
_BY_CONTEXT = 0.5


class Reads(BaseModel, frozen=True):
    """The text, and the languages of the conversation so far."""

    text: str = ""
    history: tuple[Turn, ...] = ()
    preferences: Preferences = Preferences()
    groups: tuple[str, ...] = ()
    review: ReviewScope | None = None


class Writes(MayAsk, frozen=True):
    """The language (ISO 639-1), the language of the texts around the answer, and the confidence in
    it.
    """

    language: str = Field(pattern="^[a-z]{2,3}$")
    texts_language: str = Field("", pattern="^([a-z]{2,3}(-[A-Z][a-z]{3})?)?$")
    confidence: float = Field(ge=0, le=1)


class LangAgent(Agent[Reads, Writes]):
    """Returns the language that the request or the user chose, or detects it without a model.

    The shorter the text, the more weight the languages of the conversation have. Without a
    conversation, a text of at most `SHORT_WORDS` words is more likely to be in a language of the
    documents: "validation" is English if the documents are. For a text without words (an emoji, a
    path, an address), the language of the conversation is used or, if there is none, the stored
    preference or `default_language`. The fixed texts around an answer use the script in which the
    person writes Chinese.
    """

    role = Role.LANG
    step = ProgressStep.UNDERSTAND
    reads = Reads
    writes = Writes

    def __init__(
        self,
        *,
        detector: Detector,
        default_language: str = "en",
        read_languages: ReadLanguages | None = None,
    ) -> None:
        self._detector = detector
        self._default_language = default_language
        self._read_languages = read_languages

    @classmethod
    def make(cls, parts: AgentParts) -> Self:
        return cls(
            detector=parts.detector,
            default_language=parts.settings.default_language,
            read_languages=parts.read_languages,
        )

    async def work(self, reads: Reads) -> HopOutcome[Writes]:
        writes = await self._find(reads)
        chosen = reads.preferences.language if reads.preferences.explicit else ""
        script = chosen or self._find_script(writes.language, reads)
        return Wrote(writes.model_copy(update={"texts_language": script}))

    async def _find(self, reads: Reads) -> Writes:
        if reads.review is not None and reads.review.language:
            return Writes(language=reads.review.language, confidence=1.0)
        chosen = reads.preferences.language
        if reads.preferences.explicit and chosen:
            return Writes(language=primary_of(chosen), confidence=1.0)
        prior = self._prior(reads)
        if prior:
            detection = self._detector.detect(reads.text, prior=prior)
        else:
            documents = await self._languages_for(reads)
            share = DOCUMENTS_SHARE if len(reads.text.split()) > 1 else WORD_SHARE
            detection = self._detector.detect(reads.text, prior=documents, prior_share=share)
        if detection.confidence > 0:
            return Writes(language=detection.language, confidence=detection.confidence)
        if prior:
            expected = max(prior, key=prior.__getitem__)
            return Writes(language=expected, confidence=_BY_CONTEXT)
        return Writes(language=primary_of(self._default_language), confidence=_BY_DEFAULT)

    def _find_script(self, language: str, reads: Reads) -> str:
        """Return the language of the fixed texts. The script is taken from the latest message that
        shows one or, if there is none, from the person's preferred language or the default
        language.
        """
        turns = (turn.text for turn in reversed(reads.history) if turn.speaker == "user")
        known = reads.preferences.language or read_tag(self._default_language)
        return choose_script(language, (reads.text, *turns), known)

    async def _languages_for(self, reads: Reads) -> Mapping[str, float]:
        """Return the languages of the documents as candidates for a short text, and an empty result
        for a longer one.
        """
        if self._read_languages is None or len(reads.text.split()) > SHORT_WORDS:
            return {}
        return await self._read_languages(reads.groups)

    def _prior(self, reads: Reads) -> dict[str, float]:
        """Return the weights of the languages of the turns and of the stored preference.

        Later turns have a higher weight.
        """
        prior: dict[str, float] = {}
        weight = 1.0
        for turn in reversed(reads.history):
            share = _USER_TURN if turn.speaker == "user" else _ASSISTANT_TURN
            language, confidence = self._spoken(turn)
            if confidence > 0:
                prior[language] = prior.get(language, 0.0) + weight * share * confidence
            weight *= _FADING if turn.speaker == "user" else 1.0
        if reads.preferences.language:
            known = primary_of(reads.preferences.language)
            prior[known] = prior.get(known, 0.0) + _PREFERENCE
        return prior

    def _spoken(self, turn: Turn) -> tuple[str, float]:
        return (turn.language, 1.0) if turn.language else self._detector.detect(turn.text)
