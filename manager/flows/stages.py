"""The stages that flows pass: the way in, the search, the tool loop, and the way out."""

from envelope.role import Role
from manager import classify
from manager.flow import Classifier, Stage, StageEvent, make_gather_stage, make_resume_stage

_E = StageEvent
_DONE_OR_FAILED = frozenset({_E.DONE, _E.FAILED})
_ASKS_TOO = _DONE_OR_FAILED | {_E.ASKS}


def _make_stage(
    role: Role,
    events: frozenset[StageEvent] = _ASKS_TOO,
    classifier: Classifier = classify.classify_done,
    *,
    name: str = "",
) -> Stage:
    """Return a stage, by default with the name of its role."""
    return Stage(name or role.value, role, events, classifier)


START = Stage(
    "start",
    Role.MANAGER,
    frozenset(
        {
            _E.COMMAND,
            _E.QUESTION,
            _E.PAUSE_OVER,
            _E.PAUSE_UNANSWERED,
            _E.PAUSE_FOREIGN,
            _E.FAILED,
        }
    ),
    classify.classify_start,
)
LANG = _make_stage(Role.LANG)
TRANSLATION = _make_stage(Role.TRANSLATION)
ESSENCE = _make_stage(
    Role.ESSENCE,
    _ASKS_TOO | {_E.EXIT, *classify.ACT_EVENTS.values()},
    classify.classify_essence,
)
GUARDRAILS = _make_stage(
    Role.GUARDRAILS,
    frozenset({_E.WITHIN, _E.OUTSIDE, _E.ASKS, _E.FAILED}),
    classify.classify_guardrails,
)
SEARCH = _make_stage(
    Role.SEARCH,
    frozenset({_E.FOUND, _E.MANY, _E.NOTHING, _E.ASKS, _E.FAILED}),
    classify.classify_search,
)
AUGMENTATION = _make_stage(Role.AUGMENTATION)
RESPONSE = _make_stage(Role.RESPONSE, _ASKS_TOO | {_E.GENERATION_ERROR}, classify.classify_response)
QUALITY = _make_stage(
    Role.QUALITY,
    frozenset({_E.APPROVED, _E.LOW, _E.RESEARCH, _E.REGENERATE, _E.ASKS, _E.FAILED}),
    classify.classify_quality,
)
CLARIFICATION = _make_stage(Role.CLARIFICATION, _DONE_OR_FAILED, classify.classify_reply)
COMMAND = _make_stage(Role.COMMAND, _DONE_OR_FAILED, classify.classify_reply)
TRIAGE = _make_stage(
    Role.TRIAGE,
    frozenset({_E.SEARCHES, _E.USES_TOOLS, _E.USES_SPECIALISTS, _E.ASKS, _E.FAILED}),
    classify.classify_triage,
)
REASON = _make_stage(
    Role.REASON,
    frozenset({_E.CALLS, _E.CALLS_AND_PLANS, _E.READY, _E.OUTSIDE, _E.FAILED}),
    classify.classify_reason,
)
ACT = _make_stage(Role.TOOL, _DONE_OR_FAILED, name="act")
RESULTS = make_gather_stage("results", may_ask=True)
INTERIM_RESULTS = make_gather_stage("interim_results", may_ask=True)
APPROVED_CALLS = make_resume_stage("approved_calls")
REFLECT = _make_stage(
    Role.REFLECT, frozenset({_E.FOUND, _E.NOTHING, _E.FAILED}), classify.classify_reflect
)
WRITE = _make_stage(
    Role.RESPONSE, _ASKS_TOO | {_E.GENERATION_ERROR}, classify.classify_response, name="write"
)
ASSESS = _make_stage(
    Role.ASSESS, frozenset({_E.ENOUGH, _E.AGAIN, _E.ASKS, _E.FAILED}), classify.classify_assess
)
SPECIALIST = Stage(
    "specialist", Role.MANAGER, frozenset({_E.DONE, _E.FAILED}), classify.classify_begin
)
"""Where a branch begins whose specialist its `agent_sequence` names."""
FINDINGS = make_gather_stage("findings")
SYNTHESIS = _make_stage(
    Role.SYNTHESIS, _ASKS_TOO | {_E.NOTHING}, classify.classify_synthesis, name="synthesis"
)


def make_specialist_stage(role: Role, *, name: str = "", splits: bool = False) -> Stage:
    """Return the stage of a specialist that may call tools, or divide its work."""
    events = _DONE_OR_FAILED | {_E.CALLS}
    events |= {_E.SPLITS} if splits else frozenset()
    return _make_stage(role, events, classify.classify_specialist, name=name)
