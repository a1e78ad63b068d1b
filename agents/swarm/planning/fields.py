"""The typed fields that a worker needs before it starts."""

from enum import StrEnum

from pydantic import BaseModel, Field, JsonValue


class FieldType(StrEnum):
    """The form of the value of a field."""

    TEXT = "text"
    NUMBER = "number"
    DATE = "date"
    CHOICE = "choice"
    YES_NO = "yes_no"


class RequiredInfoField(BaseModel, frozen=True, extra="forbid"):
    """A fact that a worker needs: `cues` are words before or in the value, for extraction.

    `default` is used when the field is not required and the user does not say anything.
    """

    name: str = Field(min_length=1, max_length=60, pattern=r"^[a-z][a-z0-9_]*$")
    question: str = Field(min_length=1, max_length=300)
    type: FieldType = FieldType.TEXT
    choices: tuple[str, ...] = ()
    required: bool = True
    cues: tuple[str, ...] = ()
    default: JsonValue = None


class TypedQuestion(BaseModel, frozen=True, extra="forbid"):
    """A question for the user, with the form of its answer and the workers that wait for it."""

    id: str
    text: str
    field: RequiredInfoField
    suggestions: tuple[str, ...] = ()
    workers: tuple[str, ...] = ()
