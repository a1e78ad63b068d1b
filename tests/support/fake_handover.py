"""People who take conversations over, and notes of what they were sent and what they answered."""

from dataclasses import dataclass, field

from envelope.question import Question
from gateway.port import OpenCase

TICKET = "e30=.signature"


@dataclass
class FakeHandOver:
    """A `gateway.port.HandOver` with one valid ticket; `assistant` alone has people."""

    accepts: bool = True
    assistant: str = "docs"
    notes: list[tuple[str, str]] = field(default_factory=list)
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    visitors: list[str] = field(default_factory=list)
    replies: list[tuple[str, str]] = field(default_factory=list)

    def hands_over(self, _tenant: str, assistant: str) -> bool:
        return assistant == self.assistant

    async def request(self, question: Question, *, note: str, language: str, visitor: str) -> bool:
        self.visitors.append(visitor)
        self.notes.append((question.conversation_id, note))
        self.asked.append((question.message_id, note, language))
        return self.accepts

    def is_ticket(self, ticket: str) -> bool:
        return ticket == TICKET

    async def read(self, _ticket: str) -> OpenCase | None:
        return None

    async def reply(self, ticket: str, text: str, *, reply_id: str = "") -> bool:
        del ticket
        self.replies.append((text, reply_id))
        return self.accepts
