"""The events of hops, from which a flow selects its rows."""

from enum import StrEnum


class StageEvent(StrEnum):
    """The event of a hop, derived only from the attributes that this hop wrote.

    The value is the slug that the journal holds; `description` is the sentence for people.
    """

    DONE = "completed"
    FAILED = "failed"
    ASKS = "needs_clarification"
    COMMAND = "command"
    QUESTION = "question"
    EXIT = "exit"
    COURTESY = "courtesy"
    CAPABILITIES = "capabilities"
    NO_QUESTION = "no_question"
    WHY = "why"
    REPHRASE = "rephrase"
    CORRECTION = "correction"
    WITHIN = "within_scope"
    OUTSIDE = "out_of_scope"
    VERIFIED = "verified_answer"
    FOUND = "sufficient_results"
    MANY = "ambiguous_results"
    NOTHING = "insufficient_results"
    GENERATION_ERROR = "generation_error"
    APPROVED = "approved"
    LOW = "approved_below_threshold"
    RESEARCH = "research"
    REGENERATE = "regenerate"
    GATHERED = "gathered"
    MORE = "more_branches"
    SEARCHES = "one_search"
    USES_TOOLS = "tools"
    USES_SPECIALISTS = "specialists"
    SPLITS = "parts"
    USES_SWARM = "swarm"
    BEGINS = "workers_begin"
    CALLS = "tool_calls"
    CALLS_AND_PLANS = "tool_calls_then_planning"
    READY = "no_further_calls"
    NONE_UNANSWERED = "no_new_calls_unanswered"
    NONE_ANSWERED = "no_new_calls_answered"
    NONE_JUDGED = "no_new_calls_judged"
    ENOUGH = "good_enough"
    AGAIN = "another_round"
    NEEDS_INPUT = "needs_input"
    NEEDS_APPROVAL = "needs_approval"
    REPLIED = "replied"
    DENIED = "denied"
    OTHER_TOPIC = "other_topic"
    PAUSE_OVER = "pause_over"
    PAUSE_UNANSWERED = "pause_unanswered"
    PAUSE_FOREIGN = "pause_foreign"

    @property
    def description(self) -> str:
        """Return how the documentation and `refdesk trace` describe this event to people."""
        return _DESCRIPTIONS.get(self) or self.value.replace("_", " ")


_DESCRIPTIONS = {
    StageEvent.COMMAND: "a command",
    StageEvent.QUESTION: "a question",
    StageEvent.EXIT: "the user ends the question",
    StageEvent.COURTESY: "thanks, a greeting or the like",
    StageEvent.CAPABILITIES: "what the assistant can do",
    StageEvent.NO_QUESTION: "nothing to choose or to repeat",
    StageEvent.WHY: "why it asked or refused",
    StageEvent.REPHRASE: "the last answer in other words",
    StageEvent.CORRECTION: "a correction of the last question",
    StageEvent.OUTSIDE: "not within scope",
    StageEvent.FOUND: "excellent or good results",
    StageEvent.MANY: "poor results: several topics match",
    StageEvent.NOTHING: "poor results: no topic matches",
    StageEvent.LOW: "approved below the threshold",
    StageEvent.RESEARCH: "search again",
    StageEvent.REGENERATE: "write again",
    StageEvent.GATHERED: "the results of the branches are there",
    StageEvent.MORE: "the branches that depend on these can begin",
    StageEvent.SEARCHES: "one search is enough for this question",
    StageEvent.USES_TOOLS: "the question needs several searches",
    StageEvent.USES_SPECIALISTS: "the question asks for a review",
    StageEvent.SPLITS: "the work is divided into parts",
    StageEvent.USES_SWARM: "the question is divided among workers",
    StageEvent.BEGINS: "workers start at the same time",
    StageEvent.NEEDS_APPROVAL: "the user has to approve what comes next",
    StageEvent.CALLS: "tools are called, then an answer is written",
    StageEvent.CALLS_AND_PLANS: "tools are called, then further calls are planned",
    StageEvent.READY: "everything was found, or nothing more can be",
    StageEvent.NONE_UNANSWERED: "no answer could be written, and no new call is planned",
    StageEvent.NONE_ANSWERED: "an answer was assessed, and no new call is planned",
    StageEvent.NONE_JUDGED: "an answer was checked, and no new call is planned",
    StageEvent.ENOUGH: "the answer is good enough",
    StageEvent.AGAIN: "the answer lacks something",
    StageEvent.NEEDS_INPUT: "the user is asked for information or approval",
    StageEvent.REPLIED: "the user gave the values or the approval",
    StageEvent.DENIED: "the user denied, or cannot be asked",
    StageEvent.OTHER_TOPIC: "the waiting message is about something else, or asks to stop",
    StageEvent.PAUSE_OVER: "a reply to a pause that is no longer open",
    StageEvent.PAUSE_UNANSWERED: "a reply to a pause that lacks values",
    StageEvent.PAUSE_FOREIGN: "a reply to a pause of somebody else",
}

GATHER_EVENTS = frozenset({StageEvent.GATHERED, StageEvent.MORE, StageEvent.FAILED})
RESUME_EVENTS = frozenset({StageEvent.REPLIED, StageEvent.DENIED, StageEvent.FAILED})
