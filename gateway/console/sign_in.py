"""The routes for signing in to the console and out of it."""

import hmac
import time
from typing import Annotated
from urllib.parse import urlencode

import structlog
from fastapi import APIRouter, Query, Request, Response
from starlette.responses import RedirectResponse

from gateway.console.access import (
    COOKIE,
    FORGERY_FIELD,
    OPERATOR,
    ConsoleRefusedError,
    ConsoleRole,
    Gate,
    SignedInIdentity,
    admit_visitors,
    read_form,
    require,
    user_of,
)
from gateway.console.oidc import LoginAttempt, OidcProvider, SignInError
from gateway.console.pages import HEADERS, PATH, find_back, show_notice, show_page
from gateway.public_path import public_path
from gateway.signing_keys import ProviderUnavailableError

log = structlog.get_logger("gateway")

LOGIN_COOKIE = "refdesk_console_login"
LOGIN_SECONDS = 600
_LONGEST_NEXT = 1000
_ENTERED = ("title", "text", "question", "answer", "facts", "source", "groups", "note", "origins")
"""The fields that people fill in; after an error, the page shows their values again."""
_MARKS = frozenset("\\\r\n\t")


class SignIn:
    """The sign-in routes; without a provider, people can sign in only with one-time links."""

    def __init__(self, gate: Gate, provider: OidcProvider | None) -> None:
        self._gate = gate
        self._provider = provider

    def add_to(self, router: APIRouter) -> None:
        """Add the routes."""
        add = router.add_api_route
        add(f"{PATH}/login", self.use_link, methods=["GET"])
        add(f"{PATH}/login/start", self.start, methods=["GET"])
        add(f"{PATH}/login/return", self.come_back, methods=["GET"])
        add(f"{PATH}/logout", self.sign_out, methods=["POST"])
        add(f"{PATH}/logout/everywhere", self.sign_out_everywhere, methods=["POST"])

    async def refuse(self, request: Request, refusal: ConsoleRefusedError) -> Response:
        """Return the page that explains why a request is rejected, with the values that were
        entered.
        """
        if refusal.status != 401:
            user = await self._gate.find_user(request)
            sent = await _read_kept(request) if user and self._gate.is_own_origin(request) else {}
            return show_notice(
                request,
                refusal.title,
                refusal.text,
                refusal.status,
                **({} if user is None else {"user": user}),
                fields={name: sent[name] for name in _ENTERED if sent.get(name)},
                kept={name: sent[name] for name in sent if name not in _ENTERED},
                action=f"{public_path(request)}{request.url.path}",
                back=find_back(request),
            )
        target = f"{request.url.path}?{request.url.query}" if request.method == "GET" else PATH
        query = urlencode({"next": target[:_LONGEST_NEXT]})
        return show_page(
            request, "sign_in.html", 401, query=query, has_provider=self._provider is not None
        )

    @admit_visitors
    async def use_link(
        self, request: Request, code: Annotated[str, Query(max_length=100)]
    ) -> Response:
        """Open a session with the code of a one-time link."""
        if not await self._gate.sessions.redeem(code):
            raise ConsoleRefusedError(
                403,
                "This link is no longer valid",
                "Each link opens the console once, within ten minutes. Create a new one "
                "with: refdesk console",
            )
        answer = RedirectResponse(PATH, status_code=303, headers=HEADERS)
        identity = OPERATOR.model_copy(update={"signed_in_at": time.time()})
        await self._gate.sign_in(request, answer, identity)
        return answer

    @admit_visitors
    async def start(
        self,
        request: Request,
        target: Annotated[str, Query(alias="next", max_length=_LONGEST_NEXT)] = PATH,
        fresh: bool = False,
    ) -> Response:
        """Redirect to the provider."""
        provider = self._need_provider()
        attempt = LoginAttempt.make(keep_inside(target))
        try:
            address = await provider.find_address(attempt, is_fresh=fresh)
        except ProviderUnavailableError as error:
            raise self._away(error) from error
        answer = RedirectResponse(address, status_code=303, headers=HEADERS)
        # The provider's page leads back here: a strict cookie would not be sent then.
        answer.set_cookie(
            LOGIN_COOKIE,
            attempt.encode(),
            max_age=LOGIN_SECONDS,
            path=f"{PATH}/login",
            httponly=True,
            samesite="lax",
            secure=self._gate.is_secure(request),
        )
        return answer

    @admit_visitors
    async def come_back(
        self,
        request: Request,
        code: Annotated[str, Query(max_length=4000)] = "",
        state: Annotated[str, Query(max_length=200)] = "",
    ) -> Response:
        """Open a session for a person who was authenticated by the provider and has a role."""
        provider = self._need_provider()
        attempt = LoginAttempt.decode(request.cookies.get(LOGIN_COOKIE, ""))
        if attempt is None or not hmac.compare_digest(attempt.state.encode(), state.encode()):
            raise _not_signed_in(
                "This sign-in was started in another browser, or it took too long."
            )
        if not code:
            raise _not_signed_in("The provider did not confirm your identity.")
        try:
            identity = await provider.identify(code, attempt)
        except SignInError as error:
            log.warning("console_sign_in_refused", error=str(error))
            raise _not_signed_in("The response of the provider could not be verified.") from error
        except ProviderUnavailableError as error:
            raise self._away(error) from error
        answer = self._answer(request, identity, attempt)
        if answer.status_code == 200:
            await self._gate.sign_in(request, answer, identity)
        answer.delete_cookie(LOGIN_COOKIE, path=f"{PATH}/login")
        return answer

    def _answer(
        self, request: Request, identity: SignedInIdentity, attempt: LoginAttempt
    ) -> Response:
        if not self._gate.roles_of(identity):
            log.warning("console_sign_in_refused", error="no role")
            return show_notice(
                request,
                "You have no role here",
                f"You are signed in as {identity.shown}, but you have no role for any assistant. "
                "An owner can give you one with the setting CONSOLE_ROLES.",
                403,
            )
        # A redirect would come from the provider's website: the browser would withhold the cookie.
        target = keep_inside(attempt.target).removeprefix(PATH)
        return show_page(request, "signed_in.html", target=target)

    @require(ConsoleRole.VIEWER)
    async def sign_out(self, request: Request) -> Response:
        """End the session."""
        await self._gate.sessions.end(request.cookies.get(COOKIE, ""))
        return self._say_signed_out(request, "You are signed out")

    @require(ConsoleRole.VIEWER)
    async def sign_out_everywhere(self, request: Request) -> Response:
        """End every session of the person, in all browsers."""
        await self._gate.sessions.end_all(user_of(request).identity.subject)
        return self._say_signed_out(request, "You are signed out in every browser")

    def _say_signed_out(self, request: Request, title: str) -> Response:
        again = "To sign in again, open any page of the console." if self._provider else (
            "Open the console again with: refdesk console"
        )  # fmt: skip
        answer = show_notice(request, title, again)
        answer.delete_cookie(COOKIE, path=PATH)
        return answer

    def _need_provider(self) -> OidcProvider:
        if self._provider is None:
            raise ConsoleRefusedError(
                404,
                "Not set up",
                "No sign-in provider is configured. See the setting OIDC_ISSUER.",
            )
        return self._provider

    def _away(self, error: ProviderUnavailableError) -> ConsoleRefusedError:
        log.warning("console_provider_unavailable", error=str(error))
        return ConsoleRefusedError(
            503,
            "The provider does not respond",
            "Your organisation's sign-in cannot be reached at the moment. Try again later; an "
            "operator of the server can open the console with: refdesk console",
        )


def keep_inside(target: str) -> str:
    """Return a URL within the console, or the URL of its first page for any other."""
    path = target.partition("?")[0]
    is_page = path == PATH or path.startswith(f"{PATH}/")
    is_own = is_page and not path.startswith(f"{PATH}/log") and _MARKS.isdisjoint(target)
    return target if is_own else PATH


async def _read_kept(request: Request) -> dict[str, str]:
    """Return the fields of a form without its CSRF token."""
    try:
        fields = await read_form(request) if request.method == "POST" else {}
    except ConsoleRefusedError:
        return {}
    return {name: value for name, value in fields.items() if name != FORGERY_FIELD}


def _not_signed_in(reason: str) -> ConsoleRefusedError:
    return ConsoleRefusedError(403, "You are not signed in", f"{reason} Open the console again.")
