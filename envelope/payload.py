"""The payload catalogue lists every attribute with its type, meaning, and merge rule.

`Reads` and `Writes` of agents, and `State` and `Changes` of the manager, define who reads and
writes an attribute; they may contain only attributes of this table. `docs/internal/contracts.md` is
generated from all of them. A merge rule defines how a write is combined with the current value,
both for the writes of a hop and for the results of branches. A repeated hop starts from the same
payload, so each write is merged only once.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from pydantic import JsonValue

from envelope.conversation import (
    AnswerStyle,
    ClarificationOption,
    ClarificationReason,
    ConversationAct,
    Pause,
    PauseQuestion,
    PauseReply,
    Preferences,
    QuestionTranslation,
    SuggestedAction,
    Turn,
    Understanding,
)
from envelope.sources import (
    FoundPassages,
    SearchResult,
    SearchStats,
    SourceReference,
    SourceUsed,
    ValidationResult,
    WrittenAnswer,
)
from envelope.specialists import (
    CitationCheck,
    Extracted,
    FindingList,
    FurtherRound,
    PartPlan,
    ReportReference,
    ReviewScope,
    SpecialistError,
    StoredChecklist,
    StoredPart,
    StoredVerdicts,
)
from envelope.swarm import LedgerStep, PlanStep
from envelope.tool_loop import (
    Intent,
    PlanRound,
    Strategy,
    Triage,
)

Payload = Mapping[str, JsonValue]


class MergeRule(StrEnum):
    """How a write to a payload attribute is merged with the current value."""

    REPLACE = "replace"
    APPEND = "append"
    APPEND_UNIQUE = "append_unique"
    MERGE = "merge"


def replace_value(_present: JsonValue, written: JsonValue) -> JsonValue:
    """Return the written value."""
    return written


def append_items(present: JsonValue, written: JsonValue) -> JsonValue:
    """Return the current items followed by the written ones."""
    return [*_list_items(present), *_list_items(written)]


def append_unique_items(present: JsonValue, written: JsonValue) -> JsonValue:
    """Return the current items followed by the written ones that are not yet among them."""
    items: list[JsonValue] = []
    for item in (*_list_items(present), *_list_items(written)):
        if item not in items:
            items.append(item)
    return items


def merge_objects(present: JsonValue, written: JsonValue) -> JsonValue:
    """Merge two objects recursively; written values replace current ones."""
    if not (isinstance(present, dict) and isinstance(written, dict)):
        return written
    merged = dict(present)
    for name, value in written.items():
        merged[name] = merge_objects(merged[name], value) if name in merged else value
    return merged


MERGE_FUNCTIONS: dict[MergeRule, Callable[[JsonValue, JsonValue], JsonValue]] = {
    MergeRule.REPLACE: replace_value,
    MergeRule.APPEND: append_items,
    MergeRule.APPEND_UNIQUE: append_unique_items,
    MergeRule.MERGE: merge_objects,
}
Share = float
"""A number from 0 to 1."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """A payload attribute; the gateway sets the attributes that no stage writes.

    A system attribute belongs to the envelope itself, and cannot be replaced by a payload. `merge`
    defines how a write is combined with the current value.
    """

    name: str
    type: object
    meaning: str
    is_system: bool = False
    merge: MergeRule = MergeRule.REPLACE


# fmt: off
CATALOGUE: tuple[Attribute, ...] = (
    Attribute("text", str, "the user's message without control characters; the manager joins messages that follow immediately"),
    Attribute("command", str | None, "the command's name, when the message is a command"),
    Attribute("arguments", tuple[str, ...], "the command's arguments"),
    Attribute("groups", tuple[str, ...], "groups of the user; a system attribute of the envelope, never of the payload", is_system=True),
    Attribute("history", tuple[Turn, ...], "the conversation's last turns, oldest first; from the request if the client stores the conversation"),
    Attribute("client_keeps_history", bool, "whether the client stores the conversation; Refdesk then stores only its clarification, for a day"),
    Attribute("shows_drafts", bool, "whether the channel shows sentences before the answer is approved"),
    Attribute("history_summary", str, "a summary of the turns before `history`"),
    Attribute("history_kept", int, "number of stored turns of the conversation"),
    Attribute("preferences", Preferences, "the language of the user, chosen or detected, and the form of answers that they chose"),
    Attribute("open_pause", Pause | None, "the open clarification; from the request if the client stores the conversation"),
    Attribute("pause_reply", PauseReply | None, "a typed reply to an open pause, if the channel supports it"),
    Attribute("people", tuple[str, ...], "digests of the authors of the text: several if messages were joined, empty if the channel does not know them"),
    Attribute("pause_state", Literal["over", "unanswered", "foreign"], "why a reply to a pause is not accepted: the pause is no longer open, values are missing, or it belongs to another user"),
    Attribute("keeps_pause", bool, "whether the conversation has an open pause of another user, which this message neither closes nor replaces"),
    Attribute("new_pause", Pause | None, "the pause that the message ends with"),
    Attribute("cancelled_tasks", tuple[str, ...], "titles of the open tasks of a divided question that waited for the user, and that this message about something else cancels"),
    Attribute("closes_pause", bool, "whether the end of the message closes the open pause: it was answered, or the message is about something else"),
    Attribute("reply_text", str, "the text of the reply to a pause; `text` is still that of the question"),
    Attribute("pause_answer", Literal["replied", "denied"], "how the user answered the last pause"),
    Attribute("reply_reading", Literal["asked", "reply", "other", "unread"], "whether a model interprets a message as the reply to a pause, and the result: a reply, something else, or not readable"),
    Attribute("needs_input", tuple[PauseQuestion, ...], "the values or approvals that the user must give before the work can continue; one pause asks for all", merge=MergeRule.APPEND_UNIQUE),
    Attribute("user_inputs", dict[str, JsonValue], "values that the user gave in pauses, by field name"),
    Attribute("approvals", dict[str, bool], "what the user approved or denied, by the id of the question"),
    Attribute("statistics", dict[str, float], "counts of this conversation"),
    Attribute("stage", str, "the current stage of the envelope"),
    Attribute("asking_stage", str, "the stage whose agent asks for clarification or refuses"),
    Attribute("attempt", int, "number of research and regenerate loops so far, from 0"),
    Attribute("model_usage", dict[str, JsonValue], "calls, tokens and cost of the models so far; summed by the worker, not by agents"),
    Attribute("exhausted_budget", str, "the budget that allows no further call: model_calls, tool_calls, tokens, usd or tenant_usd; set by the worker, not by agents"),
    Attribute("evidence_log", tuple[dict[str, JsonValue], ...], "digests of the evidence that each hop read and wrote; recorded by the worker, not by agents", merge=MergeRule.APPEND),
    Attribute("counters", dict[str, int], "how often the manager applied each counted row of a flow table"),
    Attribute("branches", tuple[dict[str, JsonValue], ...], "the branches of the current scatter: path, key, status, and the reason for a failure"),
    Attribute("branch_hops", int, "hops of all branches so far; the limit of hops applies to the main path and to each branch separately"),
    Attribute("branches_made", int, "number of branches that the main path or this branch has started so far"),
    Attribute("waiting_branches", tuple[dict[str, JsonValue], ...], "branches that start after the branches they depend on"),
    Attribute("triage", Triage, "the chosen way of answering, and why"),
    Attribute("intent", Intent | None, "the purpose of the calls of this round, as stated by the model; None: not stated"),
    Attribute("reasoning", str, "the reason for these calls"),
    Attribute("strategy", Strategy | None, "how this round differs from the one before"),
    Attribute("tool_calls", tuple[dict[str, JsonValue], ...], "the calls of this round: id, tool, arguments, dependencies"),
    Attribute("continues_planning", bool, "whether further calls are planned from the results of these, before an answer is written"),
    Attribute("is_loop_over", bool, "whether an answer was judged and a further round planned no new call or added no source"),
    Attribute("plan_rounds", tuple[PlanRound, ...], "what was planned in each round of the tool loop, and why", merge=MergeRule.APPEND),
    Attribute("plan_messages", tuple[dict[str, JsonValue], ...], "messages of the planning model so far, with their tool calls", merge=MergeRule.APPEND),
    Attribute("agent_sequence", tuple[str, ...], "names of the specialists to run, ordered by their dependencies"),
    Attribute("sequence_notes", tuple[str, ...], "names that were removed from or added to a planned sequence"),
    Attribute("review", ReviewScope | None, "the documents to review and the rules to review them against, if the request specifies them"),
    Attribute("errors", tuple[SpecialistError, ...], "errors of specialists; the others continued", merge=MergeRule.APPEND_UNIQUE),
    Attribute("part", PartPlan | None, "the part of a specialist's work that this branch does"),
    Attribute("part_plan", tuple[PartPlan, ...], "the parts into which a specialist divides its work"),
    Attribute("part_round", int, "how often the work was divided; parts without a result are tried once more"),
    Attribute("stored_parts", dict[str, StoredPart], "the results of the parts, by their keys", merge=MergeRule.MERGE),
    Attribute("extracted", Extracted | None, "the documents of a review, and passages for the question"),
    Attribute("classification", tuple[dict[str, JsonValue], ...], "type, domain, complexity, language and sensitivity of each document"),
    Attribute("checklist", StoredChecklist | None, "the requirements of the rules, and which of their units were read"),
    Attribute("verdicts", StoredVerdicts | None, "the verdict on each requirement: COMPLIANT, VIOLATION, GAP or UNDECIDED, with the places read"),
    Attribute("risks", FindingList | None, "risks of violations and gaps, greatest first"),
    Attribute("citation_audit", FindingList | None, "audit of the citations in the reviewed documents and in verdicts"),
    Attribute("gaps", FindingList | None, "gaps of five kinds: regulatory, coverage, consistency, citation, temporal"),
    Attribute("review_report", ReportReference | None, "the final report if it is small, else where it is stored"),
    Attribute("citation_check", CitationCheck, "the citations of the synthesis: those that exist, and those that were removed"),
    Attribute("further_round", FurtherRound | None, "the additional round of specialists that the synthesis requested; at most one"),
    Attribute("round_focus", str, "the purpose of a further round of specialists"),
    Attribute("sequence_place", int, "index in `agent_sequence` of the next specialist, from 0"),
    Attribute("tool_call", dict[str, JsonValue], "the call that a branch makes: id, tool, arguments"),
    Attribute("tool_caller", dict[str, JsonValue], "the worker for which a branch makes the call, with the tools that it may use; empty for the tool loop"),
    Attribute("multi_tool_results", dict[str, JsonValue], "the results of tool calls, by call id", merge=MergeRule.MERGE),
    Attribute("tool_executions", tuple[dict[str, JsonValue], ...], "a record of each call: tool, arguments, outcome, milliseconds", merge=MergeRule.APPEND),
    Attribute("chosen_strategy", str, "strategy of the swarm in the request; empty: not specified"),
    Attribute("persona", str, "role or person in whose voice the swarm writes, from the request"),
    Attribute("routing", dict[str, JsonValue], "how the request is handled, and why: action, reasoning, confidence, complexity"),
    Attribute("swarm_plan", dict[str, JsonValue], "the workers with their briefs, the strategy, the table of items by criteria, notes"),
    Attribute("plan_step", PlanStep, "the next step after the plan"),
    Attribute("task_ledger", dict[str, JsonValue], "the tasks with their states and all state transitions"),
    Attribute("swarm_progress", dict[str, JsonValue], "number of rounds and stalls, and the passages so far"),
    Attribute("ledger_step", LedgerStep, "the next step after the ledger"),
    Attribute("ready_tasks", tuple[str, ...], "ids of the workers to start now"),
    Attribute("required_info", dict[str, JsonValue], "the facts that workers need, by worker", merge=MergeRule.MERGE),
    Attribute("collected_info", dict[str, JsonValue], "the facts that the user has given, by field", merge=MergeRule.MERGE),
    Attribute("worker_task", dict[str, JsonValue], "the brief of a branch: the worker, known facts, results of others, and where it stopped"),
    Attribute("worker_outputs", dict[str, JsonValue], "the results of workers, by worker", merge=MergeRule.MERGE),
    Attribute("worker_progress", dict[str, JsonValue], "messages and results of workers that wait for the user, by worker", merge=MergeRule.MERGE),
    Attribute("way_fallback", str, "the row of the flow table at which a way failed and the search took over"),
    Attribute("best_answer", dict[str, JsonValue] | None, "the grounded answer with the highest score so far; before it is judged, the answer of the tool loop"),
    Attribute("termination_reason", str, "the reason if the message ended, or its work was stopped, before an approval"),
    Attribute("language", str, "language of the user's text, or the language that the user requested for the answer, ISO 639-1"),
    Attribute("texts_language", str, "language of the fixed texts around the answer, BCP 47: `language`, with the script if texts exist in two"),
    Attribute("confidence", Share, "confidence of `language`, 0-1"),
    Attribute("text_eng", str, "the text in clean English"),
    Attribute("translation_confidence", Share | None, "0-1; 0 if the text is unchanged; null from a combined call, which returns none"),
    Attribute("corrections_made", bool, "whether the translation corrected an English text"),
    Attribute("corrections", tuple[str, ...], "the corrections that the translation made"),
    Attribute("translation_error", str, "the reason if a translation was not usable"),
    Attribute("understanding", Understanding | None, "the output of a combined call for the stages after translation; None: each stage makes its own call"),
    Attribute("scope_error", str, "why the output of a combined call contained no usable verdict about the scope"),
    Attribute("decided_by", Literal["rules", "combined_call", "own_call"], "how the stage decided: only by rules, by a combined call, or by its own call"),
    Attribute("model_error", str, "why a model call gave no decision; the stage continues with rules"),
    Attribute("model_failure", str, "why no model interpreted the question although one is configured: a slug of `llm.errors.REASONS`"),
    Attribute("early_embedding", Literal["", "kept", "discarded"], "whether the question embedded in advance, while a combined call streamed, matched the output of the call; empty: nothing was embedded"),
    Attribute("canonical_question", str, "the question in a form that is understandable without context"),
    Attribute("question_parts", tuple[str, ...], "the questions of a message that asks several, each understandable without context; empty: it asks one"),
    Attribute("question_translations", tuple[QuestionTranslation, ...], "the questions of the message in the languages of the documents; empty: the documents are in the language of the message or in English"),
    Attribute("context_type", Literal["new_topic", "follow_up", "clarification"], "how the text relates to the conversation"),
    Attribute("related_history", tuple[str, ...], "earlier user turns that the text refers to, newest first"),
    Attribute("clarification_result", Literal["search_again", "exit"] | None, "the action that the reply to an open pause requests"),
    Attribute("chosen_place", tuple[str, ...], "the crumbs of the place in the documents that the user chose from the options"),
    Attribute("assumption", str, "the assumption made because the user skipped a clarification"),
    Attribute("remaining_questions", tuple[str, ...], "the other questions of the same message or an earlier one, to be offered after the answer"),
    Attribute("leaves_open", bool, "whether the message is about something other than the open clarification, which stays open"),
    Attribute("conversation_act", ConversationAct | None, "the purpose of a message that is not a new question about the documents"),
    Attribute("answer_style", AnswerStyle, "the form of answer that the user wants"),
    Attribute("within_scope", bool, "whether the question is within the configured scope"),
    Attribute("guardrails_confidence", Share | None, "0-1, returned by the call for the scope; null: there was no such call"),
    Attribute("guardrails_analysis", str, "the reason for the verdict; empty if a combined call accepted the question, because its output delays the answer"),
    Attribute("verified_answer", str, "the id of the verified answer that is sent; empty: none"),
    Attribute("needs_clarification", bool, "whether the agent asks for clarification or refuses"),
    Attribute("clarification_reason", ClarificationReason | None, "the reason for the clarification or refusal"),
    Attribute("clarification_message", str, "the unclear or missing information, for the text of the clarification"),
    Attribute("clarification_options", tuple[ClarificationOption, ...], "places in the documents that the question may mean, its separate questions, or the available documents"),
    Attribute("unknown_documents", tuple[str, ...] | None, "document names in the question that match no readable document; empty: the question contains none; None: the question is not about documents"),
    Attribute("document_languages", tuple[str, ...], "languages of the documents that were not compared with the question by meaning"),
    Attribute("message_reference", str, "the id by which the operator can find the question"),
    Attribute("search_results", tuple[SearchResult, ...], "parts of sections that were found, best first"),
    Attribute("search_context", str, "the text of the results, page by page, without repetition"),
    Attribute("common_terms", tuple[str, ...], "terms of the question that occur in many passages; not emphasised"),
    Attribute("search_stats", SearchStats, "statistics of the search"),
    Attribute("search_quality", Literal["excellent", "good", "poor"], "from the calibrated answerability"),
    Attribute("search_error", str, "the reason if the search failed"),
    Attribute("tried_chunks", tuple[str, ...], "ids of the chunks in the context"),
    Attribute("augmented_prompt", str, "the numbered sources and the question as one text for the prompt of the response agent, each source in a data block of its own"),
    Attribute("source_references", tuple[SourceReference, ...], "sources that an answer may cite"),
    Attribute("context_structure", dict[str, JsonValue], "the composition of the context"),
    Attribute("response", str, "the text for the user"),
    Attribute("sources_used", tuple[SourceUsed, ...], "sources the response cites"),
    Attribute("removed_links", tuple[str, ...], "links and addresses removed from the response, because no cited source contains them"),
    Attribute("original_answer", WrittenAnswer | None, "the answer of the model with the addresses that were removed from the response; a rewrite sees it"),
    Attribute("missing", str, "the part of the question that the sources do not answer, in the user's language"),
    Attribute("searches_again", bool, "whether the documents were searched once more because the first search did not answer the question"),
    Attribute("draft_fallback", Literal["", "not_streamed"], "why no part of the answer was shown while it was written"),
    Attribute("report_notes", tuple[dict[str, str], ...], "keys and values of the fixed texts below the answer of a swarm, such as the number of table cells with a finding"),
    Attribute("synthesis_fallback", str, "the reason if passages are shown instead of a model's text"),
    Attribute("generation_confidence", Share, "0-1"),
    Attribute("generation_error", str, "the reason if the generation failed"),
    Attribute("answer_model", str, "the model that wrote the response"),
    Attribute("answered_by", Literal["", "model", "search"], "the origin of the response: an answer written by a model, or passages found by the search"),
    Attribute("fallback_reason", str, "why no model wrote the answer, if passages are shown instead: a slug of `llm.errors.REASONS`"),
    Attribute("passages", FoundPassages | None, "the passages that are shown if no model wrote the answer"),
    Attribute("quality_score", Share | None, "0-1; null if the answer was not judged"),
    Attribute("quality_decision", Literal["approve", "research", "regenerate"], "the judge's decision"),
    Attribute("quality_analysis", str, "the judge's findings, for the next attempt"),
    Attribute("judged_answer", WrittenAnswer | None, "the original text of an answer that the judge has not approved"),
    Attribute("validation_result", ValidationResult, "the check of every claim"),
    Attribute("clarification_type", Literal["ambiguity", "scope", "context", "choice"], "the kind of clarification"),
    Attribute("suggested_actions", tuple[SuggestedAction, ...], "buttons a channel can show"),
    Attribute("clarification_fallback", str, "the reason if the fixed text was used"),
    Attribute("remember_preferences", Preferences | None, "the preferences that the user chose for all further answers"),
    Attribute("forget", Literal["", "history", "all"], "the data to erase"),
)
# fmt: on
ATTRIBUTES: dict[str, Attribute] = {attribute.name: attribute for attribute in CATALOGUE}
MERGE_RULES: dict[str, MergeRule] = {
    attribute.name: attribute.merge
    for attribute in CATALOGUE
    if attribute.merge is not MergeRule.REPLACE
}
"""The merge rules of attributes that are not simply replaced."""
SYSTEM_ATTRIBUTES = frozenset(attribute.name for attribute in CATALOGUE if attribute.is_system)
"""Envelope attributes that agents can read; payload values of these names have no effect."""


def merge_writes(
    payload: Payload, writes: Payload, rules: Mapping[str, MergeRule]
) -> dict[str, JsonValue]:
    """Return the payload with these writes; attributes without a rule are replaced."""
    merged = {**payload, **writes}
    if not rules.keys().isdisjoint(writes):
        for name in rules.keys() & writes.keys() & payload.keys():
            merged[name] = MERGE_FUNCTIONS[rules[name]](payload[name], writes[name])
    return merged


def _list_items(value: JsonValue) -> list[JsonValue]:
    if value is None:
        return []
    return list(value) if isinstance(value, list) else [value]
