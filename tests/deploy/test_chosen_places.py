"""An option that is chosen leads to its page: every option of vague questions about the example."""

import pytest

from agents.question.essence import EssenceAgent
from agents.question.essence import Reads as EssenceReads
from agents.question.translation import NEAREST, CombinedCall, Reads, TranslationAgent
from agents.search.search import Reads as SearchReads
from agents.search.search import SearchAgent
from agents.search.search import Writes as SearchWrites
from deploy.assembly.knowledge import Knowledge
from envelope.conversation import ClarificationOption, ClarificationReason, Pause
from envelope.outcome import Wrote
from llm.tasks.question import UnderstandOutput
from tests.support.scripted_model import ScriptedModel

VAGUE = (
    "How do I set it up?",
    "What does it cost?",
    "How do I change it?",
    "It is rejected, why?",
    "Which limits are there?",
)


async def find_meanings(knowledge: Knowledge, question: str) -> tuple[ClarificationOption, ...]:
    """Return the options where a model takes a question for one about any nearest page."""
    unclear = UnderstandOutput.model_validate(
        {
            "context_type": "new_topic",
            "verdict": "unclear",
            "details": {"meanings": range(1, NEAREST + 1)},
        }
    )
    combined = CombinedCall(ScriptedModel([unclear]), knowledge.searcher, "SMS Platform")
    agent = TranslationAgent(model=None, combined=combined)
    outcome = await agent.work(Reads(text=question, language="en"))
    assert isinstance(outcome, Wrote)
    assert outcome.writes.understanding is not None
    return outcome.writes.understanding.meanings


async def choose(knowledge: Knowledge, pause: Pause, text: str) -> SearchWrites:
    replied = await EssenceAgent(model=None).work(EssenceReads(text=text, open_pause=pause))
    assert isinstance(replied, Wrote)
    essence = replied.writes
    found = await SearchAgent(searcher=knowledge.searcher).work(
        SearchReads(
            canonical_question=essence.canonical_question,
            chosen_place=essence.chosen_place,
            related_history=essence.related_history,
            assumption=essence.assumption,
            text=text,
            text_eng=text,
            language="en",
        )
    )
    assert isinstance(found, Wrote)
    return found.writes


@pytest.mark.parametrize("question", VAGUE)
async def test_every_option_of_a_vague_question_leads_to_its_page_first(
    knowledge: Knowledge, question: str
) -> None:
    meanings = await find_meanings(knowledge, question)
    pause = Pause(
        pause_id="p",
        original_question=question,
        original_text=question,
        reason=ClarificationReason.AMBIGUOUS_QUERY,
        asked="Which one do you mean?",
        options=tuple(one.label for one in meanings),
        places=tuple(one.crumbs for one in meanings),
    )

    chosen = [await choose(knowledge, pause, str(n)) for n in range(1, len(meanings) + 1)]
    assumed = await choose(knowledge, pause, "Answer anyway")

    assert len(meanings) > 2
    firsts = [writes.search_results[0] for writes in (*chosen, assumed)]
    paths = [(*first.crumbs, *first.heading_path) for first in firsts]
    wanted = [one.crumbs for one in (*meanings, meanings[0])]
    assert [path[: len(place)] for path, place in zip(paths, wanted, strict=True)] == wanted
    assert {writes.search_quality for writes in chosen} <= {"good", "excellent"}
    assert {first.span and first.span[0] for first in firsts} == {0}
