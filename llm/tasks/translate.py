"""Asks for a text in clean English."""

from pydantic import BaseModel, Field

from llm.port import PREPARING_SHARE, Task
from llm.tasks.confidence import Confidence


class Inputs(BaseModel, frozen=True):
    """A text whose protected parts are places `⟦1⟧`, `⟦2⟧`, ..."""

    text: str
    language: str = Field(description="of the text, ISO 639-1")


class Output(BaseModel, frozen=True):
    """The text in English, with the same places."""

    text_eng: str = Field(description="the text in clean English, places such as ⟦1⟧ unchanged")
    confidence: Confidence = Field(description="how sure you are of the meaning")
    corrections: tuple[str, ...] = Field(
        default=(), description="what was corrected, each in a few words: wrong -> right"
    )


TASK = Task(name="translate", inputs=Inputs, output=Output, time_share=PREPARING_SHARE)
