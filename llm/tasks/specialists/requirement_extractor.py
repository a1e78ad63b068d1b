"""Lists what a part of a law obliges, forbids, permits and defines."""

from typing import Literal

from pydantic import BaseModel, Field

from llm.port import Task
from llm.tasks.specialists.material import SpecialistInputs, TextUnit


class Inputs(SpecialistInputs):
    """A part of a law: its units in order."""

    target_law: str
    units: tuple[TextUnit, ...]


class ListedRequirement(BaseModel, frozen=True):
    """One atomic rule: something that can be verified by itself."""

    id: str = Field(default="", description="such as REQ-001; numbered again afterwards")
    requirement: str = Field(
        min_length=1, description="the rule in the words of the law, as one quotation of the unit"
    )
    source_section: str = Field(description="the id of the unit that says it")
    severity: Literal["mandatory", "recommended", "optional"] = "mandatory"
    applicability: str = Field(default="", description="the condition; empty: always")
    kind: Literal["duty", "ban", "permission", "definition"] = "duty"
    addressee: str = Field(default="", description="who has to act")
    lead: str = Field(default="", description="the sentence that introduces a list item")


class Output(BaseModel, frozen=True):
    """The requirements of all units, in order."""

    checklist: tuple[ListedRequirement, ...]
    target_law: str = ""


TASK = Task(name="requirement_extractor", inputs=Inputs, output=Output, max_output_tokens=4096)
