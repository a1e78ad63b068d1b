"""Records the model calls of a hop for the journal and the metrics."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING

from pydantic import JsonValue

from broker.values import Fields, JournalEntry, Settlement
from envelope.encoding import escape_surrogates
from envelope.run import BudgetRefusal, Run
from knowledge.port import CALIBRATION, RERANKING
from llm.port import ModelCall, record_calls
from tools.calls import ToolErrorType
from worker.agent_handler import Calls

if TYPE_CHECKING:
    from worker.metrics import PrometheusMeter

_OTHER_TOOL = "other"
"""Label for tool names that a model invented, to bound the number of metric labels."""

ANY_MODEL = "*"
"""Alias that matches any model name in the response of a server."""
NO_ALIASES: Mapping[str, str] = MappingProxyType({})
_LONGEST_NAME = 200
_NAMES = {CALIBRATION: "calibration_missing", RERANKING: "reranking_failed"}


class HopCalls:
    """Records the calls of one hop; see `worker.agent_handler.CallRecorder`."""

    def __init__(
        self, meter: "PrometheusMeter | None", model_aliases: Mapping[str, str] = NO_ALIASES
    ) -> None:
        self._meter = meter
        self._aliases = model_aliases

    @contextmanager
    def __call__(self, run: Run) -> Iterator[Calls]:
        """Record the model calls inside the block for this run."""
        with record_calls() as calls:
            try:
                yield lambda: _mark_branch(
                    run.branch,
                    *(encode_model_call(call, self._aliases) for call in calls),
                    *_encode_refusals(run.refusals),
                )
            finally:
                self._count(run.stage, calls)
                self._count_refusals(run.stage, run.refusals)

    def count_fallbacks(self, role: str, writes: Fields) -> None:
        """Count fallbacks, decisions, scores and tool calls in the writes of a role."""
        if self._meter is not None:
            for reason in fallbacks_of(writes):
                self._meter.count_fallback(role, reason)
            decided_by = writes.get("decided_by")
            if isinstance(decided_by, str):
                self._meter.count_decision(role, decided_by)
            score = writes.get("quality_score")
            if isinstance(score, float):
                self._meter.observe_score(role, score)
            self._count_tools(role, writes)

    def _count_tools(self, role: str, writes: Fields) -> None:
        """Count the tool calls and the specialist errors in the writes of a hop."""
        if self._meter is None:
            return
        for execution in _list_objects(writes.get("tool_executions")):
            kind = str(execution.get("error_type"))
            is_invented = kind == ToolErrorType.HALLUCINATION.value
            tool = _OTHER_TOOL if is_invented else str(execution.get("tool_name"))
            self._meter.count_tool_call(role, tool, kind)
        for error in _list_objects(writes.get("errors")):
            self._meter.count_specialist_error(role, str(error.get("severity")))

    def count_search(self, run: Run, is_hit: bool) -> None:
        """Count a search of a run; `is_hit` is true if the result came from the cache."""
        if self._meter is not None and run.question is not None:
            self._meter.count_search(run.stage, "cache" if is_hit else "index")

    def count_isolated_calls(self, role: str, settlement: Settlement) -> None:
        """Count the model calls in the journal of a hop that ran in a child process."""
        if self._meter is None:
            return
        for entry in settlement.journal:
            # Entries of other kinds are counted elsewhere.
            if not isinstance(entry, JournalEntry) or entry.kind != "model_call":
                continue
            model = str(entry.fields["model"])
            if entry.fields.get("from_cache"):
                saved = _read_price(entry.fields.get("saved_usd"))
                self._meter.count_cache_hit(role, model, saved_usd=saved)
            elif not entry.fields.get("from_store"):
                self._meter.count_model_call(
                    role,
                    model,
                    failed="error" in entry.fields,
                    cost_usd=_read_price(entry.fields["cost_usd"]),
                )

    def _count_refusals(self, role: str, refusals: Sequence[BudgetRefusal]) -> None:
        if self._meter is not None:
            for name in {refusal.name for refusal in refusals}:
                self._meter.count_fallback(role, f"budget_{name}")

    def _count(self, role: str, calls: Sequence[ModelCall]) -> None:
        if self._meter is None:
            return
        for call in calls:
            failed = call.error is not None
            if failed:
                self._meter.count_fallback(role, "model_failed")
            if call.from_cache:
                self._meter.count_cache_hit(role, call.model, saved_usd=call.saved_usd)
            elif not call.from_store:
                self._meter.count_model_call(
                    role, call.model, failed=failed, cost_usd=call.cost_usd
                )


def fallbacks_of(writes: Fields) -> list[str]:
    """Return the slugs of the fallbacks in the writes of a hop.

    These are missing search levels, removed links, drafts, fixed texts, and the reason why search
    results replaced the answer of a model.
    """
    stats = writes.get("search_stats")
    levels = stats.get("fallbacks") if isinstance(stats, dict) else None
    reasons = [_name_missing(str(level)) for level in levels] if isinstance(levels, list) else []
    reasons += ["links_removed"] if writes.get("removed_links") else []
    reasons += ["decided_without_model"] if writes.get("model_error") else []
    if writes.get("early_embedding") == "discarded":
        reasons.append("early_embedding_discarded")
    reasons += ["not_streamed"] if writes.get("draft_fallback") else []
    if why := writes.get("fallback_reason"):
        reasons.append(str(why))
    return [*reasons, "fixed_text"] if writes.get("clarification_fallback") else reasons


def encode_model_call(
    call: ModelCall, model_aliases: Mapping[str, str] = NO_ALIASES
) -> JournalEntry:
    """Return the journal event of a model call; an unknown cost is None.

    `answered_by` is included only if a model other than the requested one answered.
    """
    fields: dict[str, str | int | float | bool | None] = {
        "task": call.task,
        "model": call.model,
        "input_tokens": call.usage.input_tokens,
        "output_tokens": call.usage.output_tokens,
        "cached_input_tokens": call.usage.cached_input_tokens,
        "cost_usd": None if call.cost_usd is None else str(call.cost_usd),
        "milliseconds": round(call.milliseconds, 2),
        "prompt_hash": call.prompt_hash,
    }
    if call.error is not None:
        fields["error"] = escape_surrogates(call.error)
    if call.answered_by and not is_same_model(call.model, call.answered_by, model_aliases):
        fields["answered_by"] = escape_surrogates(call.answered_by[:_LONGEST_NAME])
    if call.from_store:
        fields["from_store"] = True
    if call.from_cache:
        fields["from_cache"] = True
        fields["saved_usd"] = None if call.saved_usd is None else str(call.saved_usd)
    return JournalEntry("model_call", dict(fields))


def is_same_model(requested: str, answered_by: str, aliases: Mapping[str, str]) -> bool:
    """Return whether both names refer to the same model, ignoring provider, "-latest" and dates."""
    if not requested or not answered_by:
        return requested == answered_by
    if aliases.get(requested) == ANY_MODEL or aliases.get(requested.partition("@")[0]) == ANY_MODEL:
        return True
    bare = [name.partition("@")[0].rpartition("/")[2] for name in (requested, answered_by)]
    wanted, got = (aliases.get(name, name).rpartition("/")[2].casefold() for name in bare)
    wanted = wanted.removesuffix("-latest")
    rest = got.removeprefix(wanted)
    is_dated = rest != got and rest.lstrip("-@:").replace("-", "").isdigit() and len(rest) > 6
    return wanted == got or is_dated


def _encode_refusals(refusals: Sequence[BudgetRefusal]) -> tuple[JournalEntry, ...]:
    """Return the journal event of the first refusal of a hop, or nothing."""
    return tuple(
        JournalEntry(
            "budget_exhausted",
            {"budget": refusal.name, "limit": refusal.limit, "used": refusal.used},
        )
        for refusal in refusals[:1]
    )


def _mark_branch(branch: str, *entries: JournalEntry) -> tuple[JournalEntry, ...]:
    """Add the branch to the events of a hop, if it runs in one."""
    if not branch:
        return entries
    return tuple(replace(entry, fields={**entry.fields, "branch": branch}) for entry in entries)


def _list_objects(value: object) -> list[Mapping[str, JsonValue]]:
    items = value if isinstance(value, (list, tuple)) else ()
    return [item for item in items if isinstance(item, dict)]


def _read_price(value: JsonValue) -> Decimal | None:
    return None if value is None else Decimal(str(value))


def _name_missing(fallback: str) -> str:
    return _NAMES.get(fallback, f"{fallback}_level_missing")
