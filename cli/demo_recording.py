"""A model that replays the recorded output of a model for one question about the example documents.

`refdesk demo` uses it to show an answer by a model, without a key and without a request.
"""

from collections.abc import Sequence
from decimal import Decimal

from envelope.run import OUTSIDE, Run
from llm.errors import NoModel
from llm.port import I, ModelAnswer, O, Task, TextListener, Usage
from llm.tasks.search import PromptSource, RespondInputs

QUESTION = "Can an Analyst change routing rules, and how many does the Team plan allow?"
NAME = "recording"
_CITED = {
    "[roles]": "Roles and permissions",
    "[limits]": "Configure SMS routing rules > Limits",
}
"""The end of the location of each source that the recorded answer cites."""
_OUTPUTS: dict[str, dict[str, object]] = {
    "understand": {
        "canonical_question": "",
        "context_type": "new_topic",
        "verdict": "within",
        "details": None,
    },
    "respond": {
        "status": "answered",
        "answer": "No. Only the roles Owner, Admin and Developer may change routing rules. "
        "[roles]\n\nThe Team plan allows 50 rules per account. [limits]",
        "confidence": 0.98,
        "missing": "",
    },
    "judge": {
        "claims_read": 3,
        "verdicts": [],
        "missing": [],
        "completeness": 1.0,
        "accuracy": 1.0,
        "language_matches": True,
        "analysis": "",
        "decision": "approve",
    },
}


class RecordedModel:
    """Returns the recorded output of each task; there is none for other questions."""

    name = NAME

    async def ask(
        self,
        task: Task[I, O],
        inputs: I,
        run: Run = OUTSIDE,
        *,
        skip: int = 0,
        listener: TextListener | None = None,
    ) -> ModelAnswer[O]:
        if task.name not in _OUTPUTS:
            raise NoModel(f"the recording has no output for the task {task.name!r}")
        output = dict(_OUTPUTS[task.name])
        if isinstance(inputs, RespondInputs):
            output["answer"] = _cite(str(output["answer"]), inputs.sources)
        return ModelAnswer(task.output.model_validate(output), NAME, Usage(), Decimal(0), 0.0)


def _cite(answer: str, sources: Sequence[PromptSource]) -> str:
    """Replace the recorded locations with the numbers of the sources in this search."""
    for mark, place in _CITED.items():
        numbers = [source.number for source in sources if source.place.endswith(place)]
        if not numbers:
            raise NoModel(f"the search did not find the section {place!r} that the recording cites")
        answer = answer.replace(mark, f"[{numbers[0]}]")
    return answer
