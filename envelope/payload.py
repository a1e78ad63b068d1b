"""The payload catalogue: every attribute with its type, its meaning and its merge rule.

`Reads` and `Writes` of agents, and `State` and `Changes` of the manager, say who reads and writes
it; they may only contain attributes of this table. `docs/internal/contracts.md` is generated from all. A merge rule says how a write
meets the value that is there, for the writes of a hop and for the results of branches alike. A hop
that is repeated starts from the same payload, so that each write is merged once.
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
    """How a write of a payload attribute is merged with the present value."""

    REPLACE = "replace"
    APPEND = "append"
    APPEND_UNIQUE = "append_unique"
    MERGE = "merge"


def replace_value(_present: JsonValue, written: JsonValue) -> JsonValue:
    """Return the value that was written."""
    return written


def append_items(present: JsonValue, written: JsonValue) -> JsonValue:
    """Return the present items, then the written ones."""
    return [*_list_items(present), *_list_items(written)]


def append_unique_items(present: JsonValue, written: JsonValue) -> JsonValue:
    """Return the present items, then those of the written ones that are not among them."""
    items: list[JsonValue] = []
    for item in (*_list_items(present), *_list_items(written)):
        if item not in items:
            items.append(item)
    return items


def merge_objects(present: JsonValue, written: JsonValue) -> JsonValue:
    """Return both objects as one, level by level; where both have a value, the written one."""
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
    """One payload attribute; the gateway sets it at acceptance if nobody writes it.

    A system attribute is one of the envelope itself: a payload cannot replace it. `merge` says how
    a write meets the present value.
    """

    name: str
    type: object
    meaning: str
    is_system: bool = False
    merge: MergeRule = MergeRule.REPLACE


# fmt: off
CATALOGUE: tuple[Attribute, ...] = (
    Attribute("text", str, "what the user typed, cleaned of control characters; joined by the manager with messages that followed at once"),
    Attribute("command", str | None, "the command's name, when the message is a command"),
    Attribute("arguments", tuple[str, ...], "the command's arguments"),
    Attribute("groups", tuple[str, ...], "of the person who asks; a system attribute of the envelope, never of the payload", is_system=True),
    Attribute("history", tuple[Turn, ...], "the conversation's last turns, oldest first; from the request if the client stores the conversation"),
    Attribute("client_keeps_history", bool, "whether the client stores the conversation; Refdesk then stores only its clarification, for a day"),
    Attribute("shows_drafts", bool, "whether the channel shows sentences before the answer is approved"),
    Attribute("history_summary", str, "the turns before `history`, shortened"),
    Attribute("history_kept", int, "number of stored turns of the conversation"),
    Attribute("preferences", Preferences, "the language of the user, chosen or detected, and the form of answers that they chose"),
    Attribute("open_pause", Pause | None, "the open clarification; from the request if the client stores the conversation"),
    Attribute("pause_reply", PauseReply | None, "a typed reply to an open pause, from a channel that has one"),
    Attribute("people", tuple[str, ...], "digests of who wrote the text, as the channel knows them: several if messages were joined, empty if it knows nobody"),
    Attribute("pause_state", Literal["over", "unanswered", "foreign"], "why a reply to a pause does not go on: it is no longer open, values are missing, or somebody else asked"),
    Attribute("keeps_pause", bool, "whether the conversation has an open pause of somebody else, which this message neither closes nor replaces"),
    Attribute("new_pause", Pause | None, "the pause with which the message ends"),
    Attribute("cancelled_tasks", tuple[str, ...], "titles of the open tasks of a divided question that waited for the user, and that this message about something else cancels"),
    Attribute("closes_pause", bool, "whether the end of the message closes the open pause: it was answered, or the message is about something else"),
    Attribute("reply_text", str, "the words of the reply to a pause; `text` is still that of the question"),
    Attribute("pause_answer", Literal["replied", "denied"], "how the user answered the last pause"),
    Attribute("reply_reading", Literal["asked", "reply", "other", "unread"], "whether a model is asked to read a message as the reply to a pause, and what it found: a reply, something else, or that no model could read it"),
    Attribute("needs_input", tuple[PauseQuestion, ...], "what the user has to say or to approve before the work can go on; one pause asks for all", merge=MergeRule.APPEND_UNIQUE),
    Attribute("user_inputs", dict[str, JsonValue], "values that the user gave in pauses, by the name of their field"),
    Attribute("approvals", dict[str, bool], "what the user approved or denied, by the id of the question"),
    Attribute("statistics", dict[str, float], "counts of this conversation"),
    Attribute("stage", str, "the present stage of the envelope"),
    Attribute("asking_stage", str, "the stage whose agent asks back or refuses"),
    Attribute("attempt", int, "number of research and regenerate loops so far, from 0"),
    Attribute("model_usage", dict[str, JsonValue], "calls, tokens and cost of the models so far; added up by the worker, not by agents"),
    Attribute("exhausted_budget", str, "the budget that allows no further call: model_calls, tool_calls, tokens, usd or tenant_usd; set by the worker, not by agents"),
    Attribute("evidence_log", tuple[dict[str, JsonValue], ...], "what each hop read and wrote of the evidence, as digests; recorded by the worker, not by agents", merge=MergeRule.APPEND),
    Attribute("counters", dict[str, int], "how often the manager took each counted row"),
    Attribute("branches", tuple[dict[str, JsonValue], ...], "the branches of the present scatter: path, key, status, and the reason of a failure"),
    Attribute("branch_hops", int, "hops of the branches so far; the limit of hops is that of the trunk and of each branch alone"),
    Attribute("branches_made", int, "number of branches that the trunk or this branch has made so far"),
    Attribute("waiting_branches", tuple[dict[str, JsonValue], ...], "branches that begin after those on which they depend"),
    Attribute("triage", Triage, "the chosen way through the middle, and why"),
    Attribute("intent", Intent | None, "what the calls of this round are for, as the model states it; None: it states nothing"),
    Attribute("reasoning", str, "why these calls"),
    Attribute("strategy", Strategy | None, "how this round differs from the one before"),
    Attribute("tool_calls", tuple[dict[str, JsonValue], ...], "the calls of this round: id, tool, arguments, dependencies"),
    Attribute("continues_planning", bool, "whether further calls are planned from the results of these, before an answer is written"),
    Attribute("is_loop_over", bool, "whether an answer was judged and a further round planned no new call"),
    Attribute("plan_rounds", tuple[PlanRound, ...], "what was planned in each round of the tool loop, and why", merge=MergeRule.APPEND),
    Attribute("plan_messages", tuple[dict[str, JsonValue], ...], "the messages of the planning model so far, with their calls", merge=MergeRule.APPEND),
    Attribute("agent_sequence", tuple[str, ...], "names of the stages that are to work, in an order in which each finds what it needs"),
    Attribute("sequence_notes", tuple[str, ...], "what was left out of a planned sequence, and what was added to it"),
    Attribute("review", ReviewScope | None, "the documents to review and the rules to review them against, if the request names them"),
    Attribute("errors", tuple[SpecialistError, ...], "what went wrong in the work of specialists; the others went on", merge=MergeRule.APPEND_UNIQUE),
    Attribute("part", PartPlan | None, "the part of a specialist's work that a branch does"),
    Attribute("part_plan", tuple[PartPlan, ...], "the parts into which a specialist divides its work"),
    Attribute("part_round", int, "how often the work was divided: parts without a result are tried once more"),
    Attribute("stored_parts", dict[str, StoredPart], "the results of the parts, by their keys", merge=MergeRule.MERGE),
    Attribute("extracted", Extracted | None, "the documents of a review, and passages for the question"),
    Attribute("classification", tuple[dict[str, JsonValue], ...], "of each document: type, domain, complexity, language, sensitivity"),
    Attribute("checklist", StoredChecklist | None, "what the rules demand, and the account of their units"),
    Attribute("verdicts", StoredVerdicts | None, "of each requirement: COMPLIANT, VIOLATION, GAP or UNDECIDED, with the places read"),
    Attribute("risks", FindingList | None, "of violations and gaps, the greatest first"),
    Attribute("citation_audit", FindingList | None, "of the reviewed documents and of the places that verdicts name"),
    Attribute("gaps", FindingList | None, "of five kinds: regulatory, coverage, consistency, citation, temporal"),
    Attribute("review_report", ReportReference | None, "the final report: itself if it is small, else where it is stored"),
    Attribute("citation_check", CitationCheck, "the citations of the synthesis: those that exist, and those that were removed"),
    Attribute("further_round", FurtherRound | None, "one more round of specialists that the synthesis asked for; there is at most one"),
    Attribute("round_focus", str, "what a further round of specialists is for"),
    Attribute("sequence_place", int, "place in `agent_sequence` of the next one, from 0"),
    Attribute("tool_call", dict[str, JsonValue], "the call that a branch makes: its key, the tool, its arguments"),
    Attribute("tool_caller", dict[str, JsonValue], "for whom a branch calls, if not for the tool loop: the name of the worker, and the tools that it may use"),
    Attribute("multi_tool_results", dict[str, JsonValue], "the results of tool calls, by id of the call", merge=MergeRule.MERGE),
    Attribute("tool_executions", tuple[dict[str, JsonValue], ...], "a record of each call: tool, arguments, outcome, milliseconds", merge=MergeRule.APPEND),
    Attribute("chosen_strategy", str, "the strategy of the swarm that the request names; empty: none"),
    Attribute("persona", str, "in whose voice the swarm writes, as the request says"),
    Attribute("routing", dict[str, JsonValue], "how the request is handled, and why: action, reasoning, confidence, complexity"),
    Attribute("swarm_plan", dict[str, JsonValue], "the workers with their briefs, the strategy, the table of items by criteria, notes"),
    Attribute("plan_step", PlanStep, "what follows the plan"),
    Attribute("task_ledger", dict[str, JsonValue], "the tasks with their states, and every move"),
    Attribute("swarm_progress", dict[str, JsonValue], "rounds, stalls, new plans, passages so far"),
    Attribute("ledger_step", LedgerStep, "what follows the ledger"),
    Attribute("ready_tasks", tuple[str, ...], "ids of the workers that begin now"),
    Attribute("required_info", dict[str, JsonValue], "the facts that workers need, by worker", merge=MergeRule.MERGE),
    Attribute("collected_info", dict[str, JsonValue], "the facts that the user has given, by field", merge=MergeRule.MERGE),
    Attribute("worker_task", dict[str, JsonValue], "the brief of a branch: the worker, known facts, what others found, and where it stopped"),
    Attribute("worker_outputs", dict[str, JsonValue], "what workers found, by worker", merge=MergeRule.MERGE),
    Attribute("worker_progress", dict[str, JsonValue], "messages and results of workers that wait for the user, by worker", merge=MergeRule.MERGE),
    Attribute("way_fallback", str, "the row of the flow by which a way failed and the search answered instead"),
    Attribute("best_answer", dict[str, JsonValue] | None, "the grounded answer with the highest score so far; before a judgement, the one that the tool loop wrote"),
    Attribute("termination_reason", str, "the reason if the message ended, or its work was stopped, before an approval"),
    Attribute("language", str, "of the user's text, or in which the user wants the answer, ISO 639-1"),
    Attribute("texts_language", str, "of the texts around the answer, BCP 47: `language`, with its script where texts exist in two"),
    Attribute("confidence", Share, "of `language`, 0-1"),
    Attribute("text_eng", str, "the text in clean English"),
    Attribute("translation_confidence", Share | None, "0-1; 0 if the text is unchanged; null from a combined call, which states none"),
    Attribute("corrections_made", bool, "whether the translation corrected an English text"),
    Attribute("corrections", tuple[str, ...], "the corrections that the translation made"),
    Attribute("translation_error", str, "the reason if a translation was not usable"),
    Attribute("understanding", Understanding | None, "what a combined call found for the stages after translation; None: each stage asks by itself"),
    Attribute("scope_error", str, "why a combined call that was answered gave no usable verdict about the scope"),
    Attribute("decided_by", Literal["rules", "combined_call", "own_call"], "what decided the stage: rules alone, a call for several stages, or a call of its own"),
    Attribute("model_error", str, "why a model that was asked decided nothing; the stage goes on by what rules can prove"),
    Attribute("model_failure", str, "why no model interpreted the question, though one is set up: a slug of `llm.errors.REASONS`"),
    Attribute("early_embedding", Literal["", "kept", "discarded"], "whether the question that a vendor embedded while a combined call was being written was that of the call; empty: nothing was embedded"),
    Attribute("canonical_question", str, "the question in a form that needs no context"),
    Attribute("question_parts", tuple[str, ...], "the questions of a message that asks several, each in a form that needs no context; empty: it asks one"),
    Attribute("question_translations", tuple[QuestionTranslation, ...], "the questions of the message in the languages of the documents; empty: the documents are in the language of the message or in English"),
    Attribute("context_type", Literal["new_topic", "follow_up", "clarification"], "how the text relates to the conversation"),
    Attribute("related_history", tuple[str, ...], "earlier user turns that the text refers to, newest first"),
    Attribute("clarification_result", Literal["search_again", "exit"] | None, "the action that the reply to an open pause requests"),
    Attribute("chosen_place", tuple[str, ...], "the crumbs to the place in the documents that the user chose from the options"),
    Attribute("assumption", str, "the assumption made because the user skipped a clarification"),
    Attribute("remaining_questions", tuple[str, ...], "the other questions of the same message or an earlier one, to be offered after the answer"),
    Attribute("leaves_open", bool, "whether the message is about something else than the open clarification, which stays open"),
    Attribute("conversation_act", ConversationAct | None, "what the message does if it asks nothing new of the documents"),
    Attribute("answer_style", AnswerStyle, "the form in which the user wants the answer"),
    Attribute("within_scope", bool, "whether the question is within the configured scope"),
    Attribute("guardrails_confidence", Share | None, "0-1, as the call for the scope stated it; null: there was no such call"),
    Attribute("guardrails_analysis", str, "why; empty where a combined call accepted the question: the user waits for every word of that call, so it gives a reason only for other verdicts"),
    Attribute("verified_answer", str, "the id of the answer of the owner that goes out; empty: there is none"),
    Attribute("needs_clarification", bool, "whether the agent asks back or refuses"),
    Attribute("clarification_reason", ClarificationReason | None, "why"),
    Attribute("clarification_message", str, "the unclear or missing information, for the text of the clarification"),
    Attribute("clarification_options", tuple[ClarificationOption, ...], "competing places in the documents that the question may mean, its separate questions, or the documents that there are"),
    Attribute("unknown_documents", tuple[str, ...] | None, "names in the question that no readable document has; empty: it names none; None: it is about no document"),
    Attribute("document_languages", tuple[str, ...], "of the documents whose meaning was not compared with the question"),
    Attribute("message_reference", str, "the id by which the operator finds the question again"),
    Attribute("search_results", tuple[SearchResult, ...], "parts of sections that were found, best first"),
    Attribute("search_context", str, "the text of the results, page by page, without repetition"),
    Attribute("common_terms", tuple[str, ...], "of the question, that many passages of the documents hold; not emphasised"),
    Attribute("search_stats", SearchStats, "statistics of the search"),
    Attribute("search_quality", Literal["excellent", "good", "poor"], "from the calibrated answerability"),
    Attribute("search_error", str, "the reason if the search failed"),
    Attribute("tried_chunks", tuple[str, ...], "chunks that the context holds"),
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
    Attribute("report_notes", tuple[dict[str, str], ...], "keys and values of the fixed texts below the answer of a swarm: what no source says, such as how many cells of a table have a finding"),
    Attribute("synthesis_fallback", str, "the reason if passages are shown instead of a text of the model"),
    Attribute("generation_confidence", Share, "0-1"),
    Attribute("generation_error", str, "the reason if the generation failed"),
    Attribute("answer_model", str, "the model that wrote the response"),
    Attribute("answered_by", Literal["", "model", "search"], "what the response is: an answer that a model wrote, or passages that the search found"),
    Attribute("fallback_reason", str, "why no model wrote the answer, if passages are shown instead: a slug of `llm.errors.REASONS`"),
    Attribute("passages", FoundPassages | None, "the passages that are shown if no model wrote the answer"),
    Attribute("quality_score", Share | None, "0-1; null where nobody judged the answer"),
    Attribute("quality_decision", Literal["approve", "research", "regenerate"], "the judge's decision"),
    Attribute("quality_analysis", str, "the judge's findings, for the next attempt"),
    Attribute("judged_answer", WrittenAnswer | None, "the answer that the judge has not approved, as it was written"),
    Attribute("validation_result", ValidationResult, "the check of every claim"),
    Attribute("clarification_type", Literal["ambiguity", "scope", "context", "choice"], "the kind of clarification"),
    Attribute("suggested_actions", tuple[SuggestedAction, ...], "buttons a channel can show"),
    Attribute("clarification_fallback", str, "the reason if the fixed text was used"),
    Attribute("remember_preferences", Preferences | None, "what the user chose for all further answers"),
    Attribute("forget", Literal["", "history", "all"], "the data to erase"),
)
# fmt: on
ATTRIBUTES: dict[str, Attribute] = {attribute.name: attribute for attribute in CATALOGUE}
MERGE_RULES: dict[str, MergeRule] = {
    attribute.name: attribute.merge
    for attribute in CATALOGUE
    if attribute.merge is not MergeRule.REPLACE
}
"""The rules of the attributes that a write does not just replace."""
SYSTEM_ATTRIBUTES = frozenset(attribute.name for attribute in CATALOGUE if attribute.is_system)
"""What agents read of the envelope itself: a value of this name in the payload has no effect."""


def merge_writes(
    payload: Payload, writes: Payload, rules: Mapping[str, MergeRule]
) -> dict[str, JsonValue]:
    """Return the payload with these writes; `rules` has the attributes that are not replaced."""
    merged = {**payload, **writes}
    if not rules.keys().isdisjoint(writes):
        for name in rules.keys() & writes.keys() & payload.keys():
            merged[name] = MERGE_FUNCTIONS[rules[name]](payload[name], writes[name])
    return merged


def _list_items(value: JsonValue) -> list[JsonValue]:
    if value is None:
        return []
    return list(value) if isinstance(value, list) else [value]
