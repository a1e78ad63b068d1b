"""The stages of all flows: start, search, tool loop, specialists, swarm, and judgement."""

from envelope.role import Role
from manager import classify
from manager.flow import Classifier, Stage, StageEvent, make_gather_stage, make_resume_stage

_E = StageEvent
_DONE_OR_FAILED = frozenset({_E.DONE, _E.FAILED})
_ASKS_TOO = _DONE_OR_FAILED | {_E.ASKS}


def make_stage(
    role: Role,
    events: frozenset[StageEvent] = _ASKS_TOO,
    classifier: Classifier = classify.classify_done,
    *,
    name: str = "",
) -> Stage:
    """Return a stage, which by default has the name of its role."""
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
            _E.READS_REPLY,
            _E.FAILED,
        }
    ),
    classify.classify_start,
)
READ_REPLY = make_stage(Role.GATHER, _DONE_OR_FAILED, classify.classify_reading, name="read_reply")
LANG = make_stage(Role.LANG)
TRANSLATION = make_stage(Role.TRANSLATION)
ESSENCE = make_stage(
    Role.ESSENCE,
    _ASKS_TOO | {_E.EXIT, *classify.ACT_EVENTS.values()},
    classify.classify_essence,
)
GUARDRAILS = make_stage(
    Role.GUARDRAILS,
    frozenset({_E.WITHIN, _E.VERIFIED, _E.OUTSIDE, _E.ASKS, _E.FAILED}),
    classify.classify_guardrails,
)
SEARCH = make_stage(
    Role.SEARCH,
    frozenset({_E.FOUND, _E.MANY, _E.NOTHING, _E.ASKS, _E.FAILED}),
    classify.classify_search,
)
AUGMENTATION = make_stage(Role.AUGMENTATION)
RESPONSE = make_stage(
    Role.RESPONSE,
    _ASKS_TOO | {_E.GENERATION_ERROR, _E.RESEARCH},
    classify.classify_answer_of_search,
)
_JUDGED = frozenset({_E.APPROVED, _E.LOW, _E.RESEARCH, _E.REGENERATE, _E.ASKS, _E.FAILED})
QUALITY = make_stage(Role.QUALITY, _JUDGED, classify.classify_quality)
JUDGE = make_stage(Role.QUALITY, _JUDGED, classify.classify_quality, name="judge")
CLARIFICATION = make_stage(Role.CLARIFICATION, _DONE_OR_FAILED, classify.classify_reply)
COMMAND = make_stage(Role.COMMAND, _DONE_OR_FAILED, classify.classify_reply)
TRIAGE = make_stage(
    Role.TRIAGE,
    frozenset({_E.SEARCHES, _E.USES_TOOLS, _E.USES_SPECIALISTS, _E.USES_SWARM, _E.ASKS, _E.FAILED}),
    classify.classify_triage,
)
REASON = make_stage(
    Role.REASON,
    frozenset(
        {
            _E.CALLS,
            _E.CALLS_AND_PLANS,
            _E.READY,
            _E.NOTHING_NEW,
            _E.ASKS,
            _E.OUTSIDE,
            _E.FAILED,
        }
    ),
    classify.classify_reason,
)
ACT = make_stage(Role.TOOL, _DONE_OR_FAILED, name="act")
RESULTS = make_gather_stage("results", may_ask=True)
INTERIM_RESULTS = make_gather_stage("interim_results", may_ask=True)
APPROVED_CALLS = make_resume_stage("approved_calls")
REFLECT = make_stage(
    Role.REFLECT,
    frozenset({_E.FOUND, _E.NOTHING, _E.NOTHING_NEW, _E.ASKS, _E.FAILED}),
    classify.classify_reflect,
)
WRITE = make_stage(
    Role.RESPONSE, _ASKS_TOO | {_E.GENERATION_ERROR}, classify.classify_response, name="write"
)
LOOP_JUDGE = make_stage(Role.QUALITY, _JUDGED, classify.classify_quality, name="loop_judge")
SHOWN = Stage(
    "shown_message", Role.MANAGER, frozenset({_E.DONE, _E.FAILED}), classify.classify_shown
)
"""The first stage of a branch that reads a waiting message."""
SHOWN_LANG = make_stage(Role.LANG, name="shown_lang")
SHOWN_TRANSLATION = make_stage(Role.TRANSLATION, name="shown_translation")
SHOWN_ESSENCE = make_stage(
    Role.ESSENCE,
    _DONE_OR_FAILED | {_E.OTHER_TOPIC},
    classify.classify_shown_topic,
    name="shown_essence",
)
SPECIALIST = Stage(
    "specialist", Role.MANAGER, frozenset({_E.DONE, _E.FAILED}), classify.classify_begin
)
"""The first stage of the branch of a specialist, which is named in `agent_sequence`."""
FINDINGS = make_gather_stage("findings")
SYNTHESIS = make_stage(
    Role.SYNTHESIS,
    _ASKS_TOO | {_E.NOTHING, _E.NOTHING_NEW, _E.AGAIN},
    classify.classify_synthesis,
    name="synthesis",
)
PLAN = make_stage(
    Role.PLAN,
    frozenset({_E.DONE, _E.NEEDS_APPROVAL, _E.SEARCHES, _E.FAILED}),
    classify.classify_plan,
)
APPROVED_PLAN = make_resume_stage("approved_plan")
GATHER = make_stage(
    Role.GATHER, frozenset({_E.DONE, _E.NEEDS_INPUT, _E.FAILED}), classify.classify_gather
)
GIVEN_FACTS = make_resume_stage("given_facts")
LEDGER = make_stage(
    Role.LEDGER,
    frozenset(
        {
            _E.DONE,
            _E.BEGINS,
            _E.NEEDS_INPUT,
            _E.NEEDS_APPROVAL,
            _E.AGAIN,
            _E.NOTHING_NEW,
            _E.FAILED,
        }
    ),
    classify.classify_ledger,
)
RESUMED_WORK = make_resume_stage("resumed_work")
WORK = make_stage(Role.WORK, frozenset({_E.CALLS, _E.DONE, _E.FAILED}), classify.classify_work)
WORKER_ACT = make_stage(Role.TOOL, _DONE_OR_FAILED, name="worker_act")
WORKER_RESULTS = make_gather_stage("worker_results", may_ask=True)
WORKED = make_gather_stage("worked")
SYNTHESIZE = make_stage(
    Role.SYNTHESIZE,
    frozenset({_E.DONE, _E.NOTHING, _E.FAILED}),
    classify.classify_swarm_answer,
)


def make_specialist_stage(role: Role, *, name: str = "", splits: bool = False) -> Stage:
    """Return the stage of a specialist that may call tools and, if `splits` is true, split its
    work.
    """
    events = _DONE_OR_FAILED | {_E.CALLS}
    events |= {_E.SPLITS} if splits else frozenset()
    return make_stage(role, events, classify.classify_specialist, name=name)
