"""People who take conversations over, and notes of what they were sent and what they answered."""

from dataclasses import dataclass, field
from typing import Literal

from envelope.question import Question
from gateway.port import OpenCase
from memory.http_state import VisitorAddress

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
    mails: bool = False
    addresses: list[str] = field(default_factory=list)

    def hands_over(self, _tenant: str, assistant: str) -> bool:
        return assistant == self.assistant

    @property
    def mails_visitors(self) -> bool:
        return self.mails

    async def request(
        self, question: Question, *, note: str, language: str, visitor: str, address: str = ""
    ) -> bool:
        self.visitors.append(visitor)
        self.addresses += [address] if address else []
        self.notes.append((question.conversation_id, note))
        self.asked.append((question.message_id, note, language))
        return self.accepts

    async def ask_to_confirm(
        self, _question: Question, *, language: str, visitor: str
    ) -> Literal["asked", "confirmed", "failed"]:
        del language, visitor
        return "asked"

    def read_confirmation(self, _ticket: str) -> str | None:
        return None

    async def confirm(self, _ticket: str) -> bool:
        return False

    async def find_address(self, _question: Question) -> VisitorAddress | None:
        return VisitorAddress(self.addresses[-1], is_confirmed=False) if self.addresses else None

    async def answer(self, _question: Question, text: str, language: str) -> bool:
        del language
        self.replies.append((text, ""))
        return self.accepts

    def is_ticket(self, ticket: str) -> bool:
        return ticket == TICKET

    async def read(self, _ticket: str) -> OpenCase | None:
        return None

    async def reply(self, ticket: str, text: str, *, reply_id: str = "") -> bool:
        del ticket
        self.replies.append((text, reply_id))
        return self.accepts
