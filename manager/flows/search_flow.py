"""The flow `search`: search, answer, and judge, each of which can be repeated within limits."""

from envelope.conversation import ClarificationReason as Reason
from manager.flow import Counter, Row, StageEvent
from manager.flows import stages as at
from manager.flows.released import make_flow
from manager.flows.shared_rows import BEST, CLARIFYING, make_way_in, make_way_out

# fmt: off
SEARCHING: tuple[Row, ...] = (
    #   stage              event                       next stage        counter             at its limit       reason
    Row(at.SEARCH,         StageEvent.FOUND,           at.AUGMENTATION),
    Row(at.SEARCH,         StageEvent.MANY,            at.CLARIFICATION, Counter.ROUND,      at.CLARIFICATION,  Reason.AMBIGUOUS_QUERY),
    Row(at.SEARCH,         StageEvent.NOTHING,         at.CLARIFICATION, None,               None,              Reason.INSUFFICIENT_CONTEXT),
    Row(at.SEARCH,         StageEvent.ASKS,            at.CLARIFICATION, Counter.ROUND,      at.CLARIFICATION),
    Row(at.SEARCH,         StageEvent.FAILED,          BEST),
    Row(at.AUGMENTATION,   StageEvent.DONE,            at.RESPONSE),
    Row(at.AUGMENTATION,   StageEvent.ASKS,            at.CLARIFICATION, Counter.ROUND,      at.CLARIFICATION),
    Row(at.AUGMENTATION,   StageEvent.FAILED,          BEST),
    Row(at.RESPONSE,       StageEvent.DONE,            at.QUALITY),
    Row(at.RESPONSE,       StageEvent.GENERATION_ERROR, at.RESPONSE,      Counter.NEXT_MODEL, BEST),
    Row(at.RESPONSE,       StageEvent.RESEARCH,        at.SEARCH,        Counter.RESEARCH,   at.CLARIFICATION,  Reason.INSUFFICIENT_CONTEXT),
    Row(at.RESPONSE,       StageEvent.ASKS,            at.CLARIFICATION, Counter.ROUND,      at.CLARIFICATION),
    Row(at.RESPONSE,       StageEvent.FAILED,          at.RESPONSE,      Counter.NEXT_MODEL, BEST),
)
# fmt: on
"""The rows from a search to an answer."""

SEARCH_FLOW = make_flow(
    "search",
    (
        *make_way_in(at.SEARCH, rephrase=at.SEARCH),
        *SEARCHING,
        *make_way_out(again=at.SEARCH, write=at.RESPONSE),
        *CLARIFYING,
    ),
)
