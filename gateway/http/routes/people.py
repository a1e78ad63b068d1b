"""The routes for the desk's data about a person: preferences, statistics, and erasure."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, Field

from envelope.conversation import AnswerStyle
from gateway.api_keys import Scope
from gateway.http.access import Principal, list_people
from gateway.http.context import AssistantName, HttpChannel, require_scope
from gateway.http.errors import InvalidRequestError
from gateway.people import PersonalData
from records.store import PAGE, PersonFigures

PERSON = "/v1/person"
UserId = Annotated[
    str | None,
    Query(
        min_length=1,
        max_length=128,
        description="id of the person, only with a secret key; otherwise the header "
        "X-Person-Token identifies the person",
    ),
]


class ChosenPreferences(BaseModel):
    """The preferences that the person set for all of their conversations, in the chat or with a
    command.
    """

    language: str | None = Field(None, description="ISO 639-1", examples=["de"])
    style: AnswerStyle | None = Field(None, description="form of the answers", examples=["shorter"])


class PersonStatistics(BaseModel):
    """The outcomes of the person's recorded questions, and their ratings of the answers."""

    questions: int = 0
    conversations: int = 0
    answered: int = 0
    asked_back: int = 0
    refused: int = 0
    failed: int = 0
    rated_up: int = 0
    rated_down: int = 0
    languages: int = 0
    last_at: datetime | None = None


class Person(BaseModel):
    """A person as known to an assistant."""

    preferences: ChosenPreferences
    statistics: PersonStatistics


class ListedPerson(PersonStatistics):
    """A person in the owner's list."""

    person: str = Field(description="pseudonym, as in the console and in `refdesk forget`")
    name: str = Field("", description="name of the person in the channel, if names are recorded")


class PersonList(BaseModel):
    """The people who asked questions, with the most recent first."""

    people: list[ListedPerson]
    has_more: bool


class ForgottenData(BaseModel):
    """The erased data."""

    conversations: int
    has_more: bool = Field(description="the person has further conversations; repeat the request")


def people_router(channel: HttpChannel, people: PersonalData) -> APIRouter:
    """Return the routes."""
    router = APIRouter(tags=["people"])
    reader = Depends(require_scope(channel, Scope.READ))
    eraser = Depends(require_scope(channel, Scope.FORGET))
    operator = Depends(require_scope(channel, Scope.DOCUMENTS))

    @router.get(PERSON, summary="Read the preferences and statistics of a person")
    async def read_person(
        caller: Annotated[Principal, reader],
        user_id: UserId = None,
        assistant: AssistantName = None,
    ) -> Person:
        """Return a person's preferences, and the outcomes of their recorded questions to an
        assistant.
        """
        person, own = _find_person(caller, user_id), _name(channel, caller, assistant)
        chosen = await people.read_choice(own, person)
        person_figures = await people.list_figures([own], person=person, limit=1)
        return Person(
            preferences=ChosenPreferences(language=chosen.language, style=chosen.style),
            statistics=PersonStatistics(**_count(person_figures[0]))
            if person_figures
            else PersonStatistics(),
        )

    @router.delete(PERSON, summary="Forget a person")
    async def forget_person(
        caller: Annotated[Principal, eraser],
        user_id: UserId = None,
        assistant: AssistantName = None,
    ) -> ForgottenData:
        """Erase a person's preferences, and all of their recorded conversations with an
        assistant.
        """
        person, own = _find_person(caller, user_id), _name(channel, caller, assistant)
        done = await people.forget([own], person)
        return ForgottenData(conversations=done.conversations, has_more=done.has_more)

    @router.get("/v1/people", summary="List people")
    async def list_who_asked(
        caller: Annotated[Principal, operator],
        assistant: AssistantName = None,
        page: Annotated[int, Query(ge=1, le=10_000)] = 1,
    ) -> PersonList:
        """Return the people who use an assistant, under their pseudonyms, with their statistics."""
        own = _name(channel, caller, assistant)
        offset = (page - 1) * PAGE
        person_figures = await people.list_figures([own], offset=offset, limit=PAGE + 1)
        listed = [
            ListedPerson(person=figures.person, name=figures.name, **_count(figures))
            for figures in person_figures[:PAGE]
        ]
        return PersonList(people=listed, has_more=len(person_figures) > PAGE)

    return router


def _find_person(caller: Principal, user_id: str | None) -> str:
    people = list_people(caller, user_id, "user_id")
    if not people:
        raise InvalidRequestError(
            "specify the person as user_id with a secret key, or in the header X-Person-Token",
            code="person_required",
            param="user_id",
        )
    return people[0]


def _name(channel: HttpChannel, caller: Principal, assistant: str | None) -> tuple[str, str]:
    question = channel.desk(caller, assistant).name_question("-", "-")
    return question.tenant, question.assistant


def _count(figures: PersonFigures) -> dict[str, int | datetime]:
    return {
        "questions": figures.messages,
        "conversations": figures.conversations,
        "answered": figures.answered,
        "asked_back": figures.asked_back,
        "refused": figures.refused,
        "failed": figures.failed,
        "rated_up": figures.up,
        "rated_down": figures.down,
        "languages": figures.languages,
        "last_at": datetime.fromtimestamp(figures.last_at, UTC),
    }
