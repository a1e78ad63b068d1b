"""Settings of what single people may use: visitors of websites, and people in chats."""

from pydantic import BaseModel, Field


class VisitorSettings(BaseModel):
    """What limits single people; a part of `Settings`."""

    visitor_requests_per_minute: int = Field(
        120, ge=1, description="of one visitor (an address) with one public key"
    )
    visitor_questions_per_minute: int = Field(
        30, ge=1, description="of one visitor with one public key"
    )
    visitor_questions_per_day: int = Field(
        500,
        ge=1,
        description="of one visitor with one public key that names no number of its own; an "
        "office behind one address is one visitor",
    )
    visitor_openings_per_minute: int = Field(
        30, ge=1, description="conversations that one visitor opens"
    )
    visitor_openings_per_day: int = Field(
        500, ge=1, description="conversations that one visitor opens"
    )
    visitor_failures_per_minute: int = Field(
        30, ge=1, description="requests of one visitor with a key or a token that is not good"
    )
    visitor_share: float = Field(
        0.25, gt=0, le=1, description="of a public key's own limits that one visitor may use"
    )
    chat_questions_per_minute: int = Field(
        10, ge=0, description="chats: of one person in all their chats; 0: no limit"
    )
    chat_questions_per_day: int = Field(
        200, ge=0, description="chats: of one person in all their chats; 0: no limit"
    )
    empty_conversation_minutes: float = Field(
        15.0, gt=0, description="visitors' conversations in which nothing is asked end after"
    )
