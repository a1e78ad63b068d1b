"""A small task, its inputs and outputs, and prompts for it."""

from dataclasses import dataclass

from pydantic import BaseModel, Field

from llm.port import Task
from llm.stored_model import CallKey


class Question(BaseModel, frozen=True):
    text: str


class Colour(BaseModel, frozen=True):
    name: str
    shade: float = Field(default=0.5, ge=0, le=1)
    notes: tuple[str, ...] = ()


COLOUR = Task(name="colour", inputs=Question, output=Colour, max_output_tokens=64)
SKY = Question(text="What colour is the sky?")
BLUE = Colour(name="blue", shade=0.25)


@dataclass(frozen=True)
class Written:
    system: str
    user: str
    hash: str


class PlainPrompts:
    """Prompts without files: the inputs as they are."""

    def render(self, task_name: str, inputs: BaseModel) -> Written:
        user = inputs.model_dump_json()
        return Written(f"You do {task_name}.", user, f"{task_name}:{user}")


class CallsInMemory:
    """A call store in a dictionary."""

    def __init__(self) -> None:
        self.kept: dict[CallKey, bytes] = {}

    async def get(self, key: CallKey) -> bytes | None:
        return self.kept.get(key)

    async def put(self, key: CallKey, answer: bytes) -> None:
        self.kept[key] = answer
