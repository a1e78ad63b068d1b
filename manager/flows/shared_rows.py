"""The rows that all flows share: from the message to its scope check, and from an answer to its end.

The first row of a stage is on the main path of an answered question.
"""

from envelope.conversation import ClarificationReason as Reason
from manager.flow import Counter, Ending, Final, Row, Stage, StageEvent
from manager.flows import stages as at

ANSWER, BEST, EXIT = Final(Ending.ANSWER), Final(Ending.BEST), Final(Ending.EXIT)
PAUSE, PAUSE_OVER = Final(Ending.PAUSE), Final(Ending.PAUSE_OVER)
PAUSE_FOREIGN = Final(Ending.PAUSE_FOREIGN)
REPLY, FIXED, ACT = Final(Ending.REPLY), Final(Ending.FIXED), Final(Ending.ACT)
# fmt: off
CLARIFYING: tuple[Row, ...] = (
    Row(at.CLARIFICATION,  StageEvent.DONE,            REPLY),
    Row(at.CLARIFICATION,  StageEvent.FAILED,          FIXED),
)
# fmt: on
"""The rows of a clarification or a refusal."""


def make_way_in(middle: Stage, rephrase: Stage) -> tuple[Row, ...]:
    """Return the rows up to the scope check.

    `middle` is the next stage for a question in scope, `rephrase` for a request to rephrase the last
    answer.
    """
    # fmt: off
    return (
        #   stage              event                       next stage        counter             at its limit       reason
        Row(at.START,          StageEvent.QUESTION,        at.LANG),
        Row(at.START,          StageEvent.COMMAND,         at.COMMAND),
        Row(at.START,          StageEvent.PAUSE_OVER,      PAUSE_OVER),
        Row(at.START,          StageEvent.PAUSE_UNANSWERED, PAUSE),
        Row(at.START,          StageEvent.PAUSE_FOREIGN,   PAUSE_FOREIGN),
        Row(at.START,          StageEvent.READS_REPLY,     at.READ_REPLY,    Counter.TURN,       BEST),
        Row(at.START,          StageEvent.FAILED,          BEST),
        Row(at.READ_REPLY,     StageEvent.DONE,            at.START),
        Row(at.READ_REPLY,     StageEvent.FAILED,          BEST),
        Row(at.COMMAND,        StageEvent.DONE,            REPLY),
        Row(at.COMMAND,        StageEvent.FAILED,          BEST),
        Row(at.LANG,           StageEvent.DONE,            at.TRANSLATION),
        Row(at.LANG,           StageEvent.ASKS,            at.CLARIFICATION, Counter.ROUND,      at.CLARIFICATION),
        Row(at.LANG,           StageEvent.FAILED,          BEST),
        Row(at.TRANSLATION,    StageEvent.DONE,            at.ESSENCE),
        Row(at.TRANSLATION,    StageEvent.ASKS,            at.CLARIFICATION, Counter.ROUND,      at.CLARIFICATION),
        Row(at.TRANSLATION,    StageEvent.FAILED,          at.ESSENCE),
        Row(at.ESSENCE,        StageEvent.DONE,            at.GUARDRAILS),
        Row(at.ESSENCE,        StageEvent.EXIT,            EXIT),
        Row(at.ESSENCE,        StageEvent.COURTESY,        ACT),
        Row(at.ESSENCE,        StageEvent.CAPABILITIES,    ACT),
        Row(at.ESSENCE,        StageEvent.NO_QUESTION,     ACT),
        Row(at.ESSENCE,        StageEvent.WHY,             ACT),
        Row(at.ESSENCE,        StageEvent.REPHRASE,        rephrase),
        Row(at.ESSENCE,        StageEvent.CORRECTION,      at.GUARDRAILS),
        Row(at.ESSENCE,        StageEvent.ASKS,            at.CLARIFICATION, Counter.ROUND,      at.CLARIFICATION),
        Row(at.ESSENCE,        StageEvent.FAILED,          BEST),
        Row(at.GUARDRAILS,     StageEvent.WITHIN,          middle),
        Row(at.GUARDRAILS,     StageEvent.VERIFIED,        ANSWER),
        Row(at.GUARDRAILS,     StageEvent.OUTSIDE,         at.CLARIFICATION, None,               None,              Reason.OUT_OF_SCOPE),
        Row(at.GUARDRAILS,     StageEvent.ASKS,            at.CLARIFICATION, Counter.ROUND,      at.CLARIFICATION),
        Row(at.GUARDRAILS,     StageEvent.FAILED,          at.CLARIFICATION, Counter.ROUND,      at.CLARIFICATION,  Reason.SCOPE_UNCLEAR),
    )
    # fmt: on


def make_way_out(again: Stage, write: Stage) -> tuple[Row, ...]:
    """Return the rows from an answer to the end of the message.

    `again` is the stage that searches again, and `write` is the stage that rewrites the answer.
    """
    return make_judgement(at.QUALITY, again, write)


def make_judgement(
    judge: Stage, again: Stage, write: Stage, *, rounds: Counter = Counter.RESEARCH
) -> tuple[Row, ...]:
    """Return the rows of a judging stage; see `make_way_out`. `rounds` limits `again`."""
    # fmt: off
    return (
        #   stage              event                       next stage        counter             at its limit       reason
        Row(judge,             StageEvent.APPROVED,        ANSWER),
        Row(judge,             StageEvent.LOW,             write,            Counter.REGENERATE, at.CLARIFICATION),
        Row(judge,             StageEvent.REGENERATE,      write,            Counter.REGENERATE, at.CLARIFICATION),
        Row(judge,             StageEvent.RESEARCH,        again,            rounds,             at.CLARIFICATION),
        Row(judge,             StageEvent.ASKS,            at.CLARIFICATION, Counter.ROUND,      at.CLARIFICATION),
        Row(judge,             StageEvent.FAILED,          write,            Counter.REGENERATE, BEST),
    )
    # fmt: on
