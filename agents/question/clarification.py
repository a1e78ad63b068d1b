"""Writes a clarifying question or a refusal, which an earlier agent has requested with a reason."""

import asyncio
from typing import TYPE_CHECKING, Literal, Self

from pydantic import BaseModel

from agents.agent import Agent, AgentParts, ProgressStep, ReadsLanguage
from citations.links import Allowed, clean_text, keep_links, plain_line
from citations.sources import choose_alternatives, list_labels, list_nearest_pages
from citations.verbatim import as_markdown
from citations.wording import find_asking_fault
from envelope.conversation import (
    REFUSALS,
    ClarificationOption,
    ClarificationReason,
    SuggestedAction,
    Turn,
)
from envelope.outcome import HopOutcome, Wrote
from envelope.role import Role
from envelope.sources import SearchResult
from envelope.texts import (
    Texts,
    explain_missing_answer,
    join_sentences,
    primary_of,
    put_in_quotes,
)
from knowledge.port import MATCHES_NOTHING
from llm.errors import ModelError
from llm.port import Model, find_model
from llm.tasks.question import CLARIFY, ClarifyInputs, ContextType

if TYPE_CHECKING:
    from knowledge.language.port import Detector

ENGLISH = "en"
MOST_OPTIONS = 4
_SURE_OF_LANGUAGE = 20
"""Minimum number of characters of a text whose language is checked."""
LONGEST_QUESTION = 300
"""The number of characters after which a repeated question is truncated."""
ClarificationType = Literal["ambiguity", "scope", "context", "choice"]

_Reason = ClarificationReason
_WORDING: dict[ClarificationReason, tuple[ClarificationType, str]] = {
    _Reason.AMBIGUOUS_QUERY: ("ambiguity", "ask_ambiguous"),
    _Reason.MULTIPLE_TOPICS: ("choice", "ask_topics"),
    _Reason.SCOPE_UNCLEAR: ("scope", "ask_scope"),
    _Reason.OUT_OF_SCOPE: ("scope", "decline_domain"),
    _Reason.INSUFFICIENT_CONTEXT: ("context", "decline_missing"),
    _Reason.MISSING_DETAILS: ("context", "ask_details"),
    _Reason.QUALITY_INSUFFICIENT: ("context", "ask_quality"),
    _Reason.NO_DOCUMENTS: ("scope", "decline_empty"),
    _Reason.NO_TRANSLATION: ("scope", "decline_untranslated"),
    _Reason.MODEL_FAILED: ("context", "decline_unread"),
    _Reason.INTERNAL_FAULT: ("context", "decline_fault"),
}
_FIXED = frozenset(
    {
        _Reason.NO_DOCUMENTS,
        _Reason.NO_TRANSLATION,
        _Reason.MODEL_FAILED,
        _Reason.INTERNAL_FAULT,
    }
)
"""Reasons that always use the fixed text, because they concern faults of Refdesk, and the model may
have failed.
"""
_UNREAD = frozenset({Role.GUARDRAILS.value, Role.SEARCH.value})
"""Stages that run before any passage is read, and know only that the search found no match."""
_OF_SOME_DOCUMENTS = frozenset({_Reason.OUT_OF_SCOPE, _Reason.INSUFFICIENT_CONTEXT})
"""Reasons that concern the documents that were compared with the question, which may not be all of
them.
"""
_WITHOUT_PAGES = frozenset({_Reason.OUT_OF_SCOPE, _Reason.NO_DOCUMENTS, _Reason.NO_TRANSLATION})


class Reads(ReadsLanguage, frozen=True):
    """The reason for the clarification or refusal, and the results of the search."""

    needs_clarification: bool = True
    clarification_reason: ClarificationReason | None = None
    clarification_message: str = ""
    clarification_options: tuple[ClarificationOption, ...] = ()
    canonical_question: str = ""
    text: str = ""
    context_type: ContextType = "new_topic"
    unknown_documents: tuple[str, ...] | None = None
    asking_stage: str = ""
    history: tuple[Turn, ...] = ()
    search_results: tuple[SearchResult, ...] = ()
    search_quality: Literal["excellent", "good", "poor"] = "good"
    document_languages: tuple[str, ...] = ()
    message_reference: str = ""
    model_failure: str = ""
    decided_by: Literal["rules", "combined_call", "own_call"] = "own_call"


class Writes(BaseModel, frozen=True):
    """The message to the user, and the buttons that a channel can show."""

    response: str
    clarification_type: ClarificationType
    suggested_actions: tuple[SuggestedAction, ...] = ()
    clarification_fallback: str = ""


class ClarificationAgent(Agent[Reads, Writes]):
    """Asks the user to choose among locations that the search found, or declines and lists close
    pages.

    The model words the text, unless its wording contains a link, asks for a secret, or is not in
    the user's language. In that case, and if the model fails, the fixed text in the user's language
    is used, and `clarification_fallback` contains the reason.
    """

    role = Role.CLARIFICATION
    step = ProgressStep.WRITE
    model_task = CLARIFY
    reads = Reads
    writes = Writes

    def __init__(
        self, *, model: Model | None, texts: Texts, topic: str, detector: "Detector | None" = None
    ) -> None:
        self._model = model
        self._texts = texts
        self._topic = topic
        self._detector = detector

    @classmethod
    def make(cls, parts: AgentParts) -> Self:
        return cls(
            model=find_model(parts.model(CLARIFY.name)),
            texts=parts.texts,
            topic=parts.settings.topic,
            detector=parts.detector,
        )

    async def work(self, reads: Reads) -> HopOutcome[Writes]:
        reason = _find_reason(reads)
        actions = self._make_actions(reason, reads)
        lead, fallback = await self._word_lead(reason, reads, actions)
        text = self._with_list(lead, actions, reads.reply_language)
        if reason in _OF_SOME_DOCUMENTS and reads.document_languages:
            text = f"{text}\n\n{self._note_uncompared(reads)}"
        elif _is_asked_unread(reads):
            text = f"{text}\n\n{self._explain_failure(reads)}"
        writes = Writes(
            response=_without_links(text),
            clarification_type=_WORDING[reason][0],
            suggested_actions=actions,
        )
        return Wrote(_with_fallback(writes, fallback) if fallback else writes)

    async def _word_lead(
        self, reason: ClarificationReason, reads: Reads, actions: tuple[SuggestedAction, ...]
    ) -> tuple[str, str]:
        """Return the wording, and the reason if the fixed text replaces a model's wording."""
        inputs = self._make_inputs(reason, reads, actions)
        if reason in _FIXED:
            text = inputs.fixed_text
            if reason is _Reason.MODEL_FAILED:
                text = join_sentences(self._explain_refusal(reads), text)
            return self._with_reference(text, reason, reads), ""
        if self._model is None:
            note = self._note_language(reads.reply_language)
            return self._say_unjudged(inputs.fixed_text, reads), note
        try:
            text = clean_text(
                (await self._model.ask(CLARIFY, inputs, self.run)).output.text
            ).strip()
        except ModelError as error:
            return inputs.fixed_text, f"{type(error).__name__}: {error}"
        if not (fault := find_fault(text, inputs)):
            fault = await self._find_language_fault(text, inputs)
            if fault and reads.reply_language not in self._texts.languages:
                # The fixed text is in another language as well.
                return text, f"the model's wording was kept: {fault}"
        return (inputs.fixed_text, f"the model's wording: {fault}") if fault else (text, "")

    async def _find_language_fault(self, text: str, inputs: ClarifyInputs) -> str:
        """Return that the text is not in the user's language, or an empty string."""
        own = text
        for name in (*inputs.options, inputs.topic):
            own = own.replace(name, "")
        if self._detector is None or len(own) < _SURE_OF_LANGUAGE:
            return ""
        language_fault = (await asyncio.to_thread(self._detector.detect, own)).language
        wanted = primary_of(inputs.language)
        return (
            ""
            if language_fault in (None, wanted)
            else f"it is in {language_fault!r}, expected {wanted!r}"
        )

    def _say_unjudged(self, text: str, reads: Reads) -> str:
        """Return the text, with a notice if the question was decided by the search alone."""
        if _choose_text(_find_reason(reads), reads) != "decline_unmatched":
            return text
        return join_sentences(text, self._texts.text("search_alone", reads.reply_language))

    def _note_language(self, language: str) -> str:
        known = language in self._texts.languages
        return "" if known else f"there is no fixed text in {language!r}, so English was used"

    def _make_inputs(
        self, reason: ClarificationReason, reads: Reads, actions: tuple[SuggestedAction, ...]
    ) -> ClarifyInputs:
        options = tuple(a.label for a in actions if a.kind in {"option", "source"})
        key = _choose_text(reason, reads)
        fixed_text = self._texts.text(
            key,
            reads.reply_language,
            topic=self._topic,
            question=plain_line(_choose_quoted(reads))[:LONGEST_QUESTION],
            document_languages=self._name_languages(reads),
            names=", ".join(
                put_in_quotes(plain_line(document), reads.reply_language)
                for document in reads.unknown_documents or ()
            ),
        )
        if key == "ask_ambiguous" and options:
            # The only one of these texts that is not a question: it may be shown without a list.
            asked = self._texts.text("ask_choice", reads.reply_language)
            fixed_text = f"{fixed_text}\n{asked}"
        return ClarifyInputs(
            reason=reason,
            message=reads.clarification_message,
            question=reads.canonical_question,
            options=options,
            history=reads.history,
            language=reads.reply_language,
            topic=self._topic,
            stage=reads.asking_stage,
            fixed_text=fixed_text,
        )

    def _name_languages(self, reads: Reads) -> str:
        """Return the names of the documents' languages, in the user's language."""
        known = [code for code in reads.document_languages if code in self._texts.languages]
        names = [self._texts.text(f"language_{code}", reads.reply_language) for code in known]
        return ", ".join(names or reads.document_languages)

    def _note_uncompared(self, reads: Reads) -> str:
        """Return a notice about the documents that could not be compared with the question."""
        named = self._name_languages(reads)
        note = self._texts.text("not_compared", reads.reply_language, document_languages=named)
        return join_sentences(self._explain_failure(reads), note)

    def _explain_failure(self, reads: Reads) -> str:
        """Return a notice about why no model interpreted the question, or an empty string if one
        did or none is configured.
        """
        if not reads.model_failure:
            return ""
        reason = self._texts.text(f"reason_{reads.model_failure}", reads.reply_language)
        return self._texts.text("question_unread", reads.reply_language, reason=reason)

    def _explain_refusal(self, reads: Reads) -> str:
        """Return why no model wrote an answer or interpreted the question."""
        if reads.asking_stage != Role.RESPONSE:
            return self._explain_failure(reads)
        why = explain_missing_answer(self._texts, reads.model_failure, reads.reply_language)
        return " ".join(why.split())

    def _with_reference(self, text: str, reason: ClarificationReason, reads: Reads) -> str:
        """Return the text, followed by the id of the question if an operator has to investigate
        it.
        """
        reference = plain_line(reads.message_reference)
        if reason is not _Reason.INTERNAL_FAULT or not reference:
            return text
        shown = self._texts.text("reference", reads.reply_language, reference=reference)
        return f"{text}\n\n{shown}"

    def _make_actions(
        self, reason: ClarificationReason, reads: Reads
    ) -> tuple[SuggestedAction, ...]:
        if reason in _WITHOUT_PAGES:
            return ()
        is_unread = reads.asking_stage in _UNREAD or reads.clarification_message == MATCHES_NOTHING
        if reason in REFUSALS and is_unread and reads.search_quality == "poor":
            # The calibration shows that the search results are unrelated to the question.
            return ()
        if reason in REFUSALS:
            return list_nearest_pages(reads.search_results) or tuple(
                _make_option_action(clarification_option).model_copy(update={"kind": "source"})
                for clarification_option in _choose_options(reads)
                if clarification_option.crumbs
            )
        skip = self._texts.text("skip", reads.reply_language)
        leave = self._texts.text("exit_action", reads.reply_language)
        return (
            *(_make_option_action(option) for option in _choose_options(reads)),
            SuggestedAction(label=skip, value=skip, kind="skip"),
            SuggestedAction(label=leave, value=leave, kind="exit"),
        )

    def _with_list(
        self,
        lead: str,
        actions: tuple[SuggestedAction, ...],
        language: str,
    ) -> str:
        # Plain words: signs in them are those of the question and of the documents.
        lead = as_markdown(lead)
        options = [as_markdown(action.label) for action in actions if action.kind == "option"]
        pages = [action for action in actions if action.kind == "source"]
        if options:
            listed = [f"{number}. {option}" for number, option in enumerate(options, 1)]
            return "\n".join((lead, *listed))
        if pages and lead.rstrip().endswith((":", "\uff1a")):
            # The text of the model already introduces the list.
            return list_labels(lead.rstrip(), pages)
        if pages:
            return f"{lead}\n{list_labels(self._texts.text('nearest_pages', language), pages)}"
        return lead


def find_fault(text: str, inputs: ClarifyInputs) -> str:
    """Return why a model's wording must not be shown, or an empty string."""
    if not text:
        return "it is empty"
    about = (inputs.question, inputs.message, *inputs.options, inputs.topic)
    return find_asking_fault(text, "\n".join((*about, inputs.fixed_text)))


def _choose_quoted(reads: Reads) -> str:
    """Return the question in the wording that is quoted to the user, because the canonical question
    is in English.
    """
    is_typed = reads.language != ENGLISH and reads.context_type != "clarification"
    return (reads.text if is_typed else "") or reads.canonical_question


def _find_reason(reads: Reads) -> ClarificationReason:
    return reads.clarification_reason or _Reason.MISSING_DETAILS


def _choose_text(reason: ClarificationReason, reads: Reads) -> str:
    """Return the key of the fixed text; the text about a missing document contains the name of the
    document.
    """
    if _offers_answered(reads):
        return "ask_verified"
    if reason is _Reason.MODEL_FAILED and reads.asking_stage == Role.RESPONSE:
        return "decline_unmatched"
    if reason is _Reason.INSUFFICIENT_CONTEXT:
        message, is_unread = reads.clarification_message, reads.asking_stage in _UNREAD
        if message == MATCHES_NOTHING or (is_unread and not message):
            return "decline_unmatched"
        # No rounds are left, so the question itself was unclear.
        return "decline_unclear" if is_unread else "decline_missing"
    if reason is not _Reason.MISSING_DETAILS or reads.unknown_documents is None:
        return _WORDING[reason][1]
    return "ask_unknown_document" if reads.unknown_documents else "ask_document"


def _is_asked_unread(reads: Reads) -> bool:
    """Return whether the rules ask for clarification because a model failed to interpret the
    question.
    """
    is_unjudged = reads.asking_stage == Role.GUARDRAILS and reads.decided_by == "rules"
    is_asked = is_unjudged and _find_reason(reads) not in REFUSALS
    return bool(reads.model_failure) and is_asked and not _offers_answered(reads)


def _with_fallback(writes: Writes, fallback: str) -> Writes:
    return Writes(**{**dict(writes), "clarification_fallback": fallback})


def _without_links(text: str) -> str:
    return keep_links(text, Allowed(any_host=True)).text


def _offers_answered(reads: Reads) -> bool:
    """Return whether the options are questions with verified answers, rather than locations."""
    options = reads.clarification_options
    is_ambiguous = reads.clarification_reason is _Reason.AMBIGUOUS_QUERY
    is_asked = is_ambiguous and reads.asking_stage == Role.GUARDRAILS
    return is_asked and bool(options) and not any(o.crumbs or o.is_worded for o in options)


def _choose_options(reads: Reads) -> tuple[ClarificationOption, ...]:
    """Return the options to choose from: those named by an earlier stage or, if there are none, the
    locations of the search results.
    """
    if reads.unknown_documents is not None:
        return reads.clarification_options[:MOST_OPTIONS]
    if _offers_answered(reads):
        labels = (plain_line(option.label) for option in reads.clarification_options)
        return tuple(ClarificationOption(label=label) for label in labels)[:MOST_OPTIONS]
    named = reads.clarification_options or tuple(map(_make_option, reads.search_results))
    return choose_alternatives(named, MOST_OPTIONS)


def _make_option_action(option: ClarificationOption) -> SuggestedAction:
    return SuggestedAction(label=option.label, value=option.label, crumbs=option.crumbs)


def _make_option(result: SearchResult) -> ClarificationOption:
    path = tuple(dict.fromkeys((*result.crumbs, *result.heading_path)))
    return ClarificationOption(label=path[-1] if path else result.title, crumbs=path)
