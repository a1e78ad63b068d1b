"""Lists what a part of a law obliges, forbids, permits and defines."""

from typing import Literal

from pydantic import BaseModel, Field

from llm.port import Task
from llm.tasks.specialist_material import SpecialistInputs, TextUnit


class Inputs(SpecialistInputs):
    """A part of a law: its units in order."""

    target_law: str
    units: tuple[TextUnit, ...]
    document_language: str = Field(
        default="en", description="of the reviewed document, for `fulfilled_by` and `broken_by`"
    )


class ListedRequirement(BaseModel, frozen=True):
    """One atomic rule: something that can be verified by itself."""

    id: str = Field(default="", description="such as REQ-001; numbered again afterwards")
    source_section: str = Field(description="the id of the unit that says it")
    quotation: str = Field(
        default="", description="the words of the unit that say it, copied exactly"
    )
    requirement: str = Field(
        min_length=1, description="the rule in one sentence that can be checked by itself"
    )
    severity: Literal["mandatory", "recommended", "optional"] = "mandatory"
    applicability: str = Field(default="", description="the condition; empty: always")
    kind: Literal["duty", "ban", "permission", "definition"] = "duty"
    addressee: str = Field(default="", description="who has to act")
    granularity: Literal["sentence", "item", "unit"] = Field(
        default="sentence", description="how much of the unit it is"
    )
    fulfilled_by: str = Field(
        default="", description="a clause of the document, in its language, that would fulfil it"
    )
    broken_by: str = Field(
        default="", description="a clause of the document, in its language, that would break it"
    )


class UnitWithout(BaseModel, frozen=True):
    """A unit that demands nothing of a document."""

    source_section: str = Field(description="its id")
    reason: str = Field(description="why, such as: a heading, says only when the law begins")


class Output(BaseModel, frozen=True):
    """Every unit of the inputs, in the checklist or in `without`."""

    checklist: tuple[ListedRequirement, ...]
    without: tuple[UnitWithout, ...] = ()
    target_law: str = ""


TASK = Task(name="requirement_extractor", inputs=Inputs, output=Output, max_output_tokens=8192)
