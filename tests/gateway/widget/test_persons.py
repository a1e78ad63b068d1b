"""A website says who asks: the widget sends the token, replaces it, and keeps it nowhere."""

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import pytest
from playwright.async_api import Request

from gateway.api_keys import Key
from tests.gateway.http.test_groups import sign
from tests.gateway.widget.conftest import Come
from tests.gateway.widget.test_recovery import NEAR, SHUT, SITE
from tests.support.browser import WIDGET, BrowserVisitor, DisplayedMessage
from tests.support.http_server import HttpServerFixture

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

QUESTION = "How do I add a rule?"
GIVING = f"""
const sought = setInterval(() => {{
  const widget = document.querySelector("{WIDGET}");
  if (!widget) return;
  clearInterval(sought);
  widget.personToken = () => window.giveToken();
}});
"""
"""The page of a website; it may run before or after the script of the widget."""
STORED = "() => JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])"


@dataclass
class LoginSite:
    """A website whose server signs tokens: those of `tokens`, and the last one again and again."""

    visitor: BrowserVisitor
    key: Key
    token: str
    tokens: deque[str | Exception | None] = field(default_factory=deque)
    given: list[str | None] = field(default_factory=list)
    sent: list[str | None] = field(default_factory=list)

    def give(self) -> str | None:
        """Return the next token of the person who is logged in; None: nobody is."""
        token = self.tokens.popleft() if len(self.tokens) > 1 else self.tokens[0]
        if isinstance(token, Exception):
            raise token
        self.given.append(token)
        return token

    async def opens(self, *tokens: str | Exception | None, **attributes: str) -> DisplayedMessage:
        """Open the page with a function that returns these tokens."""
        self.tokens.extend(tokens)
        await self.visitor.context.expose_function("giveToken", self.give)
        await self.visitor.context.add_init_script(GIVING)
        return await self.shows(**attributes)

    async def shows(self, **attributes: str) -> DisplayedMessage:
        """Open the page as it is."""
        named: dict[str, Any] = {"key": self.token, **attributes}
        shown = await self.visitor.opens(site=SITE, **named)
        shown.page.on("request", self._note)
        return shown

    def _note(self, request: Request) -> None:
        if "/v1/" in request.url and request.method != "OPTIONS":
            self.sent.append(request.headers.get("x-person-token"))


async def log_in(http_server: HttpServerFixture, come: Come) -> LoginSite:
    token = await http_server.public(origins=(SITE,), person_groups=("hr", "sales"))
    key = next(key for key in await http_server.keys.all() if key.opens(token, now=key.created_at))
    return LoginSite(await come(permissions=NEAR), key, token)


async def read_groups(server: HttpServerFixture, shown: DisplayedMessage) -> list[object]:
    """For which groups the messages of the page's conversation were answered."""
    stored = await shown.page.evaluate(
        "() => Object.values(localStorage).map((it) => JSON.parse(it).place.id)"
    )
    found: list[object] = []
    for conversation_id in stored:
        question = server.channel.desks["acme", "docs"].name_question(conversation_id, "-")
        recent = await server.channel.conversations.recent_messages(question, limit=9)
        found += [message.first.fields.get("groups") for message in recent]
    return found


async def test_a_question_has_the_groups_of_the_person_and_no_browser_stores_the_token(
    http_server: HttpServerFixture, come: Come
) -> None:
    site = await log_in(http_server, come)
    token = sign(site.key, "hr")
    shown = await site.opens(token)

    await shown.asks(QUESTION)
    await shown.has_answers(1)

    assert await read_groups(http_server, shown) == [["hr"]]
    assert set(site.sent) == {token}
    assert site.given == [token]
    assert token[:20] not in await shown.page.evaluate(STORED)


async def test_a_token_is_replaced_before_it_ends_and_after_it_was_refused(
    http_server: HttpServerFixture, come: Come
) -> None:
    site = await log_in(http_server, come)
    refused = sign(site.key, "hr").rpartition(".")[0] + ".forged"
    ending, good = sign(site.key, "hr", seconds=30), sign(site.key, "sales")
    shown = await site.opens(refused, ending, good)

    await shown.asks(QUESTION)
    await shown.has_answers(1)
    await shown.asks(QUESTION)
    await shown.has_answers(2)

    assert site.given == [refused, ending, good]
    assert site.sent.count(refused) == 1
    assert ["sales"] in await read_groups(http_server, shown)


async def test_an_invalid_token_is_never_sent_and_the_browser_console_reports_it(
    http_server: HttpServerFixture, come: Come
) -> None:
    site = await log_in(http_server, come)
    shown = await site.opens("<!doctype html><title>Log in</title>")

    await shown.asks(QUESTION)
    await shown.part(".problem", has_text=SHUT).wait_for()

    [hint] = site.visitor.take_console_errors()
    assert "set personToken to a function that returns a new one" in hint
    assert (site.sent, "Log in" in hint) == ([], False)


async def test_a_page_that_cannot_get_a_token_is_asked_again_and_nothing_is_sent_without(
    http_server: HttpServerFixture, come: Come
) -> None:
    site = await log_in(http_server, come)
    token = sign(site.key, "hr")
    shown = await site.opens(RuntimeError("no network"), RuntimeError("no network"), token)

    await shown.asks(QUESTION)
    await shown.has_answers(1)

    assert set(site.sent) == {token}
    [hint] = site.visitor.take_console_errors()
    assert "the page's function personToken failed" in hint


async def test_each_person_has_a_conversation_and_nobody_reads_another_persons(
    http_server: HttpServerFixture, come: Come
) -> None:
    site = await log_in(http_server, come)
    shown = await site.shows(person="ann", person_token=sign(site.key, "hr"))
    await shown.asks("How much does a manager earn?")
    await shown.has_answers(1)

    await log_in_as(shown, "ben", sign(site.key, "hr"))
    await shown.asks(QUESTION)
    await shown.has_answers(1)
    assert "manager" not in await shown.part(".log").inner_text()
    await log_in_as(shown, "ann", sign(site.key, "hr"))
    await shown.part(".turn", has_text="manager").wait_for()
    await log_in_as(shown, "ann", "")
    await shown.part(".turn").wait_for(state="detached")

    assert sorted(map(str, await read_groups(http_server, shown))) == ["['hr']", "['hr']"]


async def log_in_as(shown: DisplayedMessage, person: str, token: str) -> None:
    """Change who is logged in, as a page without a reload does."""
    await shown.page.evaluate(
        f"""([person, token]) => {{
          const widget = document.querySelector("{WIDGET}");
          widget.setAttribute("person-token", token);
          widget.setAttribute("person", person);
        }}""",
        [person, token],
    )
