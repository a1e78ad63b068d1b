"""A mailbox on a real IMAP server, into which tests put mails."""

import asyncio
import imaplib
from argparse import Namespace
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from email.message import EmailMessage

from proxyprotocol.reader import ProxyProtocolReader
from pymap.backend.dict import DictBackend
from pymap.imap import IMAPServer

from notifications.mail_replies import Mailbox

USER, PASSWORD = "demouser", "demopass"


@dataclass
class MailboxServer:
    """Where it listens."""

    port: int

    @property
    def mailbox(self) -> Mailbox:
        """The inbox, as the desk opens it."""
        return Mailbox("127.0.0.1", self.port, USER, PASSWORD, "none")

    async def put(self, mail: EmailMessage | bytes) -> None:
        """Have a mail arrive."""
        sent = mail if isinstance(mail, bytes) else mail.as_bytes()
        await asyncio.to_thread(self._put, sent)

    async def count_unread(self) -> int:
        """The number of mails that nobody has read."""
        return await asyncio.to_thread(self._count_unread)

    async def is_read(self) -> bool:
        """Whether all mails were read."""
        return await self.count_unread() == 0

    def _put(self, mail: bytes) -> None:
        with imaplib.IMAP4("127.0.0.1", self.port) as client:
            client.login(USER, PASSWORD)
            assert client.append("INBOX", "", "", mail)[0] == "OK"

    def _count_unread(self) -> int:
        with imaplib.IMAP4("127.0.0.1", self.port) as client:
            client.login(USER, PASSWORD)
            client.select("INBOX", readonly=True)
            [found] = client.uid("SEARCH", "UNSEEN")[1]
            return len(found.split())


@asynccontextmanager
async def run_mailbox_server() -> AsyncIterator[MailboxServer]:
    """Run a server with an empty inbox."""
    options = Namespace(
        host=None, port="0", debug=False, cert=None, key=None, tls=False, insecure_login=True,
        proxy_protocol=None, passlib_cfg=None, demo_data=False, demo_user=USER,
        demo_password=PASSWORD,
    )  # fmt: skip
    backend, config = await DictBackend.init(options)
    config.apply_context()
    async with AsyncExitStack() as stack:
        await backend.start(stack)
        answer = ProxyProtocolReader(config.proxy_protocol).get_callback(
            IMAPServer(backend.login, config)
        )
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        try:
            yield MailboxServer(server.sockets[0].getsockname()[1])
        finally:
            server.close()
