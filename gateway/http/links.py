"""Creates and verifies the links to the document reader of this server.

A link opens in a new tab, which does not send a key. Therefore, the link contains the document, the
caller for whom it was created, and its expiry, with a signature (HMAC-SHA256, RFC 2104). It opens
one document of one assistant, as long as that caller's key is valid.
"""

import base64
import binascii
import hashlib
import hmac
import re
import time
from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from broker.values import Fields
from envelope.question import Question
from envelope.sources import TOOL_SOURCE
from gateway.answer import PICTURE, REPORT_OF, Opens, at, opens_in
from gateway.http.access import Principal
from gateway.review_ports import is_attached

LIFE_SECONDS = 24 * 3600
"""The lifetime of a link. When an answer is read again, it gets new links."""
LONGEST_TICKET = 8_000
TICKET_FORM = r"eyJ[A-Za-z0-9_=-]{60,7900}\.[A-Za-z0-9_-]{43}"
"""A regular expression for tickets, which consist of an encoded object and its signature."""
PICTURE_FORM = r"[0-9a-f]{32}"
"""A regular expression for the ids of pictures."""
CITED = "cited"
"""The anchor of the cited part in a document without headings."""
REPORT = "report"
"""The value, instead of a passage, with which a link opens a report."""
PATH = "/v1/reader/"
EARLIER_PATH = "/v1/documents/"
"""The path to which links from earlier versions lead."""
Name = tuple[str, str]
"""Tenant and assistant."""


class Citation(BaseModel):
    """The content of a link. An empty `key_id` means a caller on the server's own machine.

    `groups` are the groups that a signed token stated for the person; the groups of the key are
    looked up. If `conversation_id` is set, the document belongs to this conversation and is not
    indexed. If `message_id` is set, the link opens the report of this message in the conversation.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    tenant: str
    assistant: str
    chunk_id: str
    key_id: str
    expires_at: int
    groups: tuple[str, ...] = ()
    conversation_id: str = ""
    message_id: str = ""

    @property
    def question(self) -> Question:
        """The message of the report, or a message of the conversation to which the document
        belongs.
        """
        return Question(
            tenant=self.tenant,
            assistant=self.assistant,
            conversation_id=self.conversation_id,
            message_id=self.message_id or "-",
        )


class SourceLinks:
    """Creates the links of sources, which lead to other servers or, if `secret` is set to sign
    them, to this one.

    `documentation` (by assistant) is interpreted by `opens_in`. `address` is the public URL of this
    server; if it is empty, the URL in each request is used.
    """

    def __init__(
        self,
        documentation: Mapping[Name, str] | None = None,
        *,
        secret: bytes | None = None,
        address: str = "",
    ) -> None:
        self._elsewhere = {
            name: opens_in(base) for name, base in (documentation or {}).items() if base
        }
        self._secret = secret
        self._address = address.rstrip("/")

    def of(self, caller: Principal, question: Question) -> Opens:
        """Return a function that returns the links of sources for a caller, for the assistant of
        `question`.
        """
        elsewhere = self._elsewhere.get((question.tenant, question.assistant), opens_in(""))

        def opens(source: Fields) -> str | None:
            message_id = source.get(REPORT_OF)
            if isinstance(message_id, str) and self._secret is not None:
                return self._sign(caller, question, REPORT, message_id=message_id)
            chunk_id = source.get("chunk_id")
            if isinstance(picture := source.get(PICTURE), str):
                return self._open_picture(caller, question, chunk_id, picture)
            address = elsewhere(source)
            if (
                address is not None
                or self._secret is None
                or not (isinstance(chunk_id, str) and chunk_id)
            ):
                return address
            if chunk_id.startswith(TOOL_SOURCE):
                # The result of a tool is not part of a document, so it has no page.
                return None
            return self._here(caller, question, chunk_id, str(source.get("anchor") or CITED))

        return opens

    def read(self, ticket: str) -> Citation | None:
        """Return the content of a ticket, which is the last part of a link, or None if it is
        invalid or expired.
        """
        body, dot, signature = ticket.partition(".")
        if self._secret is None or not dot or not ticket.isascii() or len(ticket) > LONGEST_TICKET:
            return None
        if not hmac.compare_digest(self._signature(body), signature):
            return None
        try:
            citation = Citation.model_validate_json(base64.urlsafe_b64decode(body))
        except (binascii.Error, ValidationError):
            return None
        return citation if citation.expires_at > time.time() else None

    def _here(
        self, caller: Principal, question: Question, chunk_id: str, anchor: str
    ) -> str | None:
        path = self._sign(caller, question, chunk_id)
        return None if path is None else at(path, anchor)

    def _open_picture(
        self, caller: Principal, question: Question, chunk_id: JsonValue, picture: str
    ) -> str | None:
        """Return the URL of a picture. Everybody who may open its document may see it."""
        if (
            self._secret is None
            or not (isinstance(chunk_id, str) and chunk_id)
            or not is_picture(picture)
        ):
            return None
        document = self._sign(caller, question, chunk_id)
        return None if document is None else f"{document}/{picture}"

    def _sign(
        self, caller: Principal, question: Question, chunk_id: str, *, message_id: str = ""
    ) -> str | None:
        belongs = bool(message_id) or is_attached(chunk_id)
        citation = Citation(
            tenant=question.tenant,
            assistant=question.assistant,
            chunk_id=chunk_id,
            key_id=caller.key_id,
            expires_at=_find_end(caller),
            groups=caller.person_groups,
            conversation_id=question.conversation_id if belongs else "",
            message_id=message_id,
        )
        # Without groups it is a link that earlier versions open, too.
        written = citation.model_dump_json(exclude_defaults=True)
        body = base64.urlsafe_b64encode(written.encode()).decode()
        ticket = f"{body}.{self._signature(body)}"
        address = self._address or caller.server_address
        if len(ticket) > LONGEST_TICKET or not address:
            return None
        return f"{address}{PATH}{ticket}"

    def _signature(self, body: str) -> str:
        secret = self._secret if self._secret is not None else b""
        made = hmac.new(secret, body.encode(), hashlib.sha256).digest()
        return base64.urlsafe_b64encode(made).decode().rstrip("=")


def is_picture(name: str) -> bool:
    """Return whether a name has the format of a picture id."""
    return re.fullmatch(PICTURE_FORM, name) is not None


def _find_end(caller: Principal) -> int:
    """Return when a link expires: with the person token or, without one, after its lifetime."""
    end = int(time.time()) + LIFE_SECONDS
    return end if caller.person_until is None else min(end, int(caller.person_until))
