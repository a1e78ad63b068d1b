"""Settings of limits per person: visitors of websites, and people in chats."""

from pydantic import BaseModel, Field


class VisitorSettings(BaseModel):
    """The limits of one person; a part of `Settings`."""

    visitor_requests_per_minute: int = Field(
        120,
        ge=1,
        description="maximum number of requests of one visitor (an IP address) with one public key",
    )
    visitor_questions_per_minute: int = Field(
        30, ge=1, description="maximum number of questions of one visitor with one public key"
    )
    visitor_questions_per_day: int = Field(
        500,
        ge=1,
        description="maximum number of questions of one visitor with one public key, unless the "
        "key has another limit; all people behind one IP address count as one visitor",
    )
    visitor_openings_per_minute: int = Field(
        30, ge=1, description="conversations that one visitor opens"
    )
    visitor_openings_per_day: int = Field(
        500, ge=1, description="conversations that one visitor opens"
    )
    visitor_failures_per_minute: int = Field(
        30,
        ge=1,
        description="maximum number of requests of one visitor with an invalid key or token",
    )
    visitor_share: float = Field(
        0.25, gt=0, le=1, description="maximum share of a public key's limits for one visitor"
    )
    chat_questions_per_minute: int = Field(
        10, ge=0, description="questions of one person in all of their chats; 0: no limit"
    )
    chat_questions_per_day: int = Field(
        200, ge=0, description="questions of one person in all of their chats; 0: no limit"
    )
    empty_conversation_minutes: float = Field(
        15.0,
        gt=0,
        description="time after which a conversation of a visitor is deleted if no "
        "question was asked in it",
    )
