"""Classifies documents in five dimensions."""

from typing import Literal

from pydantic import BaseModel, Field

from llm.port import Task
from llm.tasks.specialist_material import SpecialistInputs, TextUnit


class Inputs(SpecialistInputs):
    """The beginnings of the documents, by their ids."""

    documents: tuple[TextUnit, ...] = ()


class ClassifiedDocument(BaseModel, frozen=True):
    """The classes of one document."""

    document_id: str
    document_type: str = Field(description="law, contract, policy, report, manual or other")
    domain: str = Field(description="legal, data protection, financial, technical, ... or other")
    complexity: Literal["low", "medium", "high"]
    language: str = Field(description="ISO 639-1")
    sensitivity: str = Field(
        description="special categories, confidential, personal, internal or public"
    )


class Output(BaseModel, frozen=True):
    """The classes of all documents of the inputs."""

    documents: tuple[ClassifiedDocument, ...]


TASK = Task(name="classifier", inputs=Inputs, output=Output, max_output_tokens=2048)
