"""The catalogue of the payload: every attribute, its type, who writes it and who reads it.

`Reads` and `Writes` of agents may only name attributes that stand here, with the same type.
`docs/contracts.md` is generated from this table.
"""

from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from envelope.conversation import ClarificationReason, Pause, Preferences, SuggestedAction, Turn
from envelope.role import Role
from envelope.sources import (
    SearchResult,
    SearchStats,
    SourceReference,
    SourceUsed,
    ValidationResult,
)

MANAGER = (Role.MANAGER,)
NOBODY: tuple[Role, ...] = ()
ASKERS = (Role.ESSENCE, Role.GUARDRAILS, Role.SEARCH, Role.RESPONSE, Role.QUALITY)

Share = float
"""A number from 0 to 1."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """One payload attribute; written at the door when nobody is named as writer."""

    name: str
    type: object
    meaning: str
    written_by: tuple[Role, ...]
    read_by: tuple[Role, ...]


# fmt: off
CATALOGUE: tuple[Attribute, ...] = (
    Attribute("text", str, "what the user typed, cleaned of control characters", NOBODY,
              (Role.LANG, Role.TRANSLATION, Role.ESSENCE, Role.GUARDRAILS, Role.SEARCH, Role.AUGMENTATION)),
    Attribute("command", str | None, "the command's name, when the message is a command", NOBODY,
              (Role.COMMAND, Role.MANAGER)),
    Attribute("arguments", tuple[str, ...], "the command's arguments", NOBODY, (Role.COMMAND,)),
    Attribute("history", tuple[Turn, ...], "the conversation's last turns, oldest first; the door's own, where the client keeps them", MANAGER,
              (Role.LANG, Role.ESSENCE, Role.SEARCH, Role.CLARIFICATION, Role.RESPONSE)),
    Attribute("client_keeps_history", bool, "whether the client keeps the conversation: the desk keeps its own question back alone, for a day",
              NOBODY, MANAGER),
    Attribute("history_summary", str, "what was said before `history`, shortened", MANAGER, (Role.ESSENCE,)),
    Attribute("history_kept", int, "turns stored of the conversation", MANAGER, MANAGER),
    Attribute("preferences", Preferences, "what the user chose or showed", MANAGER,
              (Role.LANG, Role.COMMAND)),
    Attribute("open_pause", Pause | None, "the desk's open question to the user; the door's own, as above", MANAGER,
              (Role.ESSENCE,)),
    Attribute("statistics", dict[str, float], "counts of this conversation", MANAGER, (Role.COMMAND,)),
    Attribute("stage", str, "the stage the envelope is in", MANAGER, (Role.CLARIFICATION, Role.MANAGER)),
    Attribute("attempt", int, "research and regenerate loops so far, 0 first", MANAGER,
              (Role.SEARCH, Role.RESPONSE, Role.QUALITY)),
    Attribute("counters", dict[str, int], "how often each counted row was taken", MANAGER, MANAGER),
    Attribute("best_answer", dict[str, JsonValue] | None, "the best scored grounded answer so far", MANAGER, MANAGER),
    Attribute("termination_reason", str, "why the question ended before an approval", MANAGER, NOBODY),
    Attribute("outcome", str, "what the user sees of the question", MANAGER, NOBODY),
    Attribute("language", str, "of the user's text, ISO 639-1", (Role.LANG,),
              (Role.TRANSLATION, Role.ESSENCE, Role.GUARDRAILS, Role.SEARCH, Role.CLARIFICATION, Role.AUGMENTATION,
               Role.RESPONSE, Role.QUALITY, Role.COMMAND)),
    Attribute("confidence", Share, "of `language`, 0-1", (Role.LANG,), MANAGER),
    Attribute("text_eng", str, "the text in clean English", (Role.TRANSLATION,),
              (Role.ESSENCE, Role.GUARDRAILS, Role.SEARCH)),
    Attribute("translation_confidence", Share, "0-1; 0 when the text is as it came", (Role.TRANSLATION,), NOBODY),
    Attribute("corrections_made", tuple[str, ...], "what the translation changed", (Role.TRANSLATION,), NOBODY),
    Attribute("canonical_question", str, "the question, made to stand alone", (Role.ESSENCE,),
              (Role.GUARDRAILS, Role.SEARCH, Role.AUGMENTATION, Role.RESPONSE, Role.QUALITY, Role.CLARIFICATION)),
    Attribute("context_type", Literal["new_topic", "follow_up", "clarification"],
              "how the text relates to the conversation", (Role.ESSENCE,), MANAGER),
    Attribute("related_history", tuple[str, ...], "earlier user turns it leans on, newest first", (Role.ESSENCE,),
              (Role.GUARDRAILS, Role.SEARCH)),
    Attribute("clarification_result", Literal["search_again", "exit"] | None,
              "what the reply to an open pause asks for", (Role.ESSENCE,), MANAGER),
    Attribute("assumption", str, "what is assumed because the user skipped a clarification", (Role.ESSENCE,),
              (Role.SEARCH, Role.AUGMENTATION, Role.RESPONSE, Role.QUALITY)),
    Attribute("within_scope", bool, "whether the question is the desk's business", (Role.GUARDRAILS,), MANAGER),
    Attribute("guardrails_confidence", Share, "0-1", (Role.GUARDRAILS,), NOBODY),
    Attribute("guardrails_analysis", str, "why", (Role.GUARDRAILS,), NOBODY),
    Attribute("needs_clarification", bool, "the agent asks or declines", ASKERS, (Role.CLARIFICATION, Role.MANAGER)),
    Attribute("clarification_reason", ClarificationReason | None, "why", (*ASKERS, Role.MANAGER),
              (Role.CLARIFICATION, Role.MANAGER)),
    Attribute("clarification_message", str, "what is unclear or missing, for the wording", ASKERS,
              (Role.CLARIFICATION,)),
    Attribute("clarification_options", tuple[str, ...], "places that compete to be what was meant", (Role.SEARCH,),
              (Role.CLARIFICATION,)),
    Attribute("document_languages", tuple[str, ...], "of the documents, where the question is in none of them",
              (Role.GUARDRAILS, Role.SEARCH), (Role.CLARIFICATION,)),
    Attribute("message_reference", str, "the id by which the operator finds the question again", MANAGER,
              (Role.CLARIFICATION,)),
    Attribute("search_results", tuple[SearchResult, ...], "chunks found, best first", (Role.SEARCH,),
              (Role.SEARCH, Role.CLARIFICATION, Role.AUGMENTATION)),
    Attribute("search_context", str, "the text of the results, once", (Role.SEARCH,),
              (Role.AUGMENTATION, Role.RESPONSE, Role.QUALITY)),
    Attribute("search_stats", SearchStats, "what the search did", (Role.SEARCH,), NOBODY),
    Attribute("search_quality", Literal["excellent", "good", "poor"], "from the calibrated answerability",
              (Role.SEARCH,), MANAGER),
    Attribute("search_error", str, "why the search could not be made", (Role.SEARCH,), MANAGER),
    Attribute("tried_chunks", tuple[str, ...], "chunks that earlier attempts used", (Role.SEARCH,), (Role.SEARCH,)),
    Attribute("augmented_prompt", str, "sources and question; the context stands for `{{search_context}}`",
              (Role.AUGMENTATION,), NOBODY),
    Attribute("source_references", tuple[SourceReference, ...], "places an answer may cite", (Role.AUGMENTATION,),
              (Role.RESPONSE, Role.QUALITY)),
    Attribute("context_structure", dict[str, JsonValue], "how the context is put together", (Role.AUGMENTATION,), NOBODY),
    Attribute("response", str, "the text for the user",
              (Role.RESPONSE, Role.QUALITY, Role.CLARIFICATION, Role.COMMAND, Role.MANAGER),
              (Role.QUALITY, Role.MANAGER)),
    Attribute("sources_used", tuple[SourceUsed, ...], "sources the response cites", (Role.RESPONSE, Role.QUALITY),
              (Role.QUALITY, Role.MANAGER)),
    Attribute("removed_links", tuple[str, ...], "links and addresses that no cited source has, taken out of the response",
              (Role.RESPONSE,), NOBODY),
    Attribute("missing", str, "the part of the question that the sources do not answer, in the user's language",
              (Role.RESPONSE,), (Role.QUALITY,)),
    Attribute("generation_confidence", Share, "0-1", (Role.RESPONSE,), NOBODY),
    Attribute("generation_error", str, "why no answer could be written", (Role.RESPONSE,), MANAGER),
    Attribute("answer_model", str, "the model that wrote the response", (Role.RESPONSE,), MANAGER),
    Attribute("quality_score", Share, "0-1", (Role.QUALITY,), MANAGER),
    Attribute("quality_decision", Literal["approve", "research", "regenerate"], "what the judge wants",
              (Role.QUALITY,), MANAGER),
    Attribute("quality_analysis", str, "what is wrong or right, for the next attempt", (Role.QUALITY,),
              (Role.SEARCH, Role.RESPONSE)),
    Attribute("validation_result", ValidationResult, "the check of every claim", (Role.QUALITY,), MANAGER),
    Attribute("clarification_type", Literal["ambiguity", "scope", "context", "choice"], "what kind of question back",
              (Role.CLARIFICATION,), MANAGER),
    Attribute("suggested_actions", tuple[SuggestedAction, ...], "buttons a channel can show", (Role.CLARIFICATION,),
              MANAGER),
    Attribute("clarification_fallback", str, "why the fixed text was used", (Role.CLARIFICATION,), NOBODY),
    Attribute("remember_preferences", Preferences | None, "what is to be remembered", (Role.COMMAND,), MANAGER),
    Attribute("forget", Literal["", "history", "all"], "what is to be forgotten", (Role.COMMAND,), MANAGER),
)
# fmt: on
ATTRIBUTES: dict[str, Attribute] = {attribute.name: attribute for attribute in CATALOGUE}
