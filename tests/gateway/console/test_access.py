"""Every route of the console demands a role, and nobody gets more than theirs."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from importlib import import_module
from inspect import getmembers, isclass
from pkgutil import iter_modules
from typing import Any

import httpx
import pytest
from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.routing import APIRoute

from gateway.console import __path__ as console_path
from gateway.console.access import (
    COOKIE,
    FORGERY_HEADER,
    ConsoleRefusedError,
    ConsoleRole,
    Gate,
    admit_visitors,
    demand_of,
    make_route_class,
    require,
    user_of,
)
from gateway.console.frame import ConsolePart
from tests.support.console import (
    DESK,
    ORIGIN,
    OTHER,
    FakeSessions,
    browser_of,
    make_console,
    make_router,
    post,
    read_forgery_token,
    sign_in,
)

OPEN_TO_VISITORS = {"login", "login/start", "login/return", "console.css"}
ROLES = {
    DESK: {
        "group:staff": ConsoleRole.VIEWER,
        "ada@acme.com": ConsoleRole.EDITOR,
        "group:it": ConsoleRole.OWNER,
    },
    OTHER: {"group:hr": ConsoleRole.OWNER},
}


def list_parts() -> list[Any]:
    """Return every part of the console, whatever module it is in, without what it reads."""
    modules = [
        import_module(f"gateway.console.{module.name}") for module in iter_modules(console_path)
    ]
    classes = {one for module in modules for _, one in getmembers(module, isclass)}
    results = [
        class_
        for class_ in classes
        if issubclass(class_, ConsolePart) and class_ is not ConsolePart
    ]
    results = sorted(results, key=lambda item: f"{item.__module__}.{item.__name__}")
    return [item.__new__(item) for item in results if item.__name__ != "_Pages"]


def list_routes() -> list[APIRoute]:
    parts = list_parts()
    assert len(parts) >= 2
    routes = make_router(None, parts=parts).routes
    return [route for route in routes if isinstance(route, APIRoute)]


@pytest.mark.parametrize("route", list_routes(), ids=lambda route: route.path)
async def test_every_route_demands_a_role_or_is_one_of_the_sign_in(route: APIRoute) -> None:
    is_open = route.path.removeprefix("/console/") in OPEN_TO_VISITORS

    assert (demand_of(route.endpoint).role is None) == is_open
    assert route.methods is not None
    if is_open:
        return
    async with browser_of(make_console(None, parts=list_parts())) as client:
        for method in route.methods:
            shown = await client.request(method, route.path, headers={"origin": ORIGIN})

            assert shown.status_code == 401


CHANGES = [
    a_p_i_route
    for a_p_i_route in list_routes()
    if "POST" in (a_p_i_route.methods or ()) and "logout" not in a_p_i_route.path
]


@pytest.mark.parametrize("route", CHANGES, ids=lambda route: route.path)
async def test_no_change_is_open_to_viewers_to_others_or_to_forged_forms(route: APIRoute) -> None:
    sessions = FakeSessions()
    app = make_console(None, sessions, parts=list_parts(), roles=ROLES, assistants=(DESK, OTHER))
    named = {"tenant": DESK[0], "assistant": DESK[1], "id": "x", "person": "x", "place": "x"}
    statuses, token = dict[str, int](), ""
    async with browser_of(app) as client:
        statuses["visitor"] = (await post(client, route.path, named)).status_code
        for attacker, names, form in (
            ("viewer", ("group:staff",), {}),
            ("of another assistant", ("group:hr",), {}),
            ("owner who is led here", ("group:it", "group:hr"), {"csrf": "0" * 64}),
            ("owner without a token", ("group:it", "group:hr"), {"csrf": ""}),
        ):
            await sign_in(client, sessions, *names, subject=attacker)
            token = await find_token(client, sessions)
            sent = {**named, "csrf": token, **form}
            statuses[attacker] = (await post(client, route.path, sent)).status_code
        elsewhere = {**named, "csrf": token}
        answer = await post(client, route.path, elsewhere, origin="https://evil.example")
        statuses["page of another website"] = answer.status_code

    assert statuses.pop("visitor") == 401
    assert statuses.pop("of another assistant") in (403, 404)
    assert set(statuses.values()) == {403}


async def find_token(client: httpx.AsyncClient, sessions: FakeSessions) -> str:
    """Return the token of the forms of a client's session."""
    cookie = f"{COOKIE}={client.cookies[COOKIE]}".encode()
    request = Request({"type": "http", "headers": [(b"cookie", cookie)]})
    user = await Gate(sessions, [DESK]).find_user(request)
    assert user is not None
    return user.forgery_token


def test_a_route_that_states_no_demand_cannot_be_added() -> None:
    async def show() -> None: ...

    routes = make_route_class(Gate(FakeSessions(), [DESK]), refuse, ())
    router = APIRouter(route_class=routes)

    with pytest.raises(TypeError, match="expected `require`"):
        router.add_api_route("/console/secret", show, methods=["GET"])


async def refuse(request: Request, refusal: ConsoleRefusedError) -> Response:
    return Response(refusal.title, status_code=refusal.status)


@require(ConsoleRole.VIEWER)
async def view(request: Request) -> list[Any]:
    return list(user_of(request).list_assistants())


@require(ConsoleRole.EDITOR)
async def edit(request: Request) -> str:
    return "done"


@require(ConsoleRole.OWNER)
async def own(request: Request) -> str:
    return "done"


@require(ConsoleRole.OWNER, everywhere=True)
async def operate(request: Request) -> str:
    return "done"


@admit_visitors
async def visit() -> str:
    return "hello"


@dataclass
class Door:
    client: httpx.AsyncClient
    sessions: FakeSessions

    async def enter(self, *names: str) -> str:
        await sign_in(self.client, self.sessions, *names)
        return await find_token(self.client, self.sessions)


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    sessions = FakeSessions()
    gate = Gate(sessions, [DESK, OTHER], ROLES, "https://desk.acme.com")
    app, routes = FastAPI(), make_route_class(gate, refuse, (ConnectionError,))
    router = APIRouter(route_class=routes)
    handlers: dict[str, Callable[..., Any]] = {
        "view": view, "edit": edit, "own": own, "operate": operate, "visit": visit
    }  # fmt: skip
    for name, handler in handlers.items():
        router.add_api_route(f"/console/{name}", handler, methods=["GET", "POST"])
    app.include_router(router)
    async with browser_of(app) as client:
        yield Door(client, sessions)


@pytest.mark.parametrize(
    ("names", "statuses"),
    [
        (("group:staff",), (200, 403, 403, 403)),
        (("group:staff", "ada@acme.com"), (200, 200, 403, 403)),
        (("group:it",), (200, 200, 200, 403)),
        (("group:it", "group:hr"), (200, 200, 200, 200)),
        (("group:guests", "bob@acme.com"), (403, 403, 403, 403)),
    ],
)
async def test_a_person_may_do_what_their_greatest_role_may(
    door: Door, names: tuple[str, ...], statuses: tuple[int, ...]
) -> None:
    await door.enter(*names)

    results = [
        await door.client.get(f"/console/{text}") for text in ("view", "edit", "own", "operate")
    ]

    assert tuple(response.status_code for response in results) == statuses


async def test_a_viewer_cannot_become_an_owner(door: Door) -> None:
    token = await door.enter("group:staff")
    door.client.cookies.set("role", "owner", path="/console", domain="desk.local")

    for query in ("", "?role=owner", "?tenant=acme&assistant=desk", "?is_operator=true"):
        for path in ("edit", "own", "operate"):
            fields = {"csrf": token, "role": "owner", "names": "group:it"}
            shown = await post(door.client, f"/console/{path}{query}", fields)

            assert shown.status_code == 403


async def test_an_assistant_of_others_does_not_exist_in_any_field(door: Door) -> None:
    token = await door.enter("group:it")
    query = "?tenant=acme&assistant=hr"

    assert (await door.client.get("/console/view")).json() == [list(DESK)]
    assert (await door.client.get(f"/console/view{query}")).status_code == 404
    fields = {"csrf": token, "tenant": "acme", "assistant": "hr"}
    assert (await post(door.client, "/console/own", fields)).status_code == 404
    both = f"/console/own{query}&assistant=desk&tenant=acme"
    assert (await door.client.get(both)).status_code == 400


async def test_a_change_needs_a_form_of_this_session_on_a_page_of_the_console(door: Door) -> None:
    token = await door.enter("group:it")
    good = {"csrf": token}

    assert (await post(door.client, "/console/own", good)).status_code == 200
    by_header = {"origin": "https://desk.acme.com", FORGERY_HEADER: token}
    assert (await door.client.post("/console/own", headers=by_header)).status_code == 200
    for fields in ({}, {"csrf": ""}, {"csrf": "0" * 64}, {"csrf": "é"}):
        assert (await post(door.client, "/console/own", fields)).status_code == 403
    for origin in (
        "https://evil.com",
        "null",
        "http://desk.evil.com",
        "",
        "http://desk:81",
        "http://[",
    ):
        assert (await post(door.client, "/console/own", good, origin=origin)).status_code == 403
    assert (await door.client.post("/console/own", data=good)).status_code == 403


async def test_a_form_of_an_earlier_session_changes_nothing(door: Door) -> None:
    earlier = await door.enter("group:it")
    await door.enter("group:it")

    assert (await post(door.client, "/console/own", {"csrf": earlier})).status_code == 403


async def test_visitors_see_only_what_is_open_to_them(door: Door) -> None:
    statuses = [(await door.client.get(f"/console/{text}")).status_code
                for text in ("visit", "view", "edit", "own", "operate")]  # fmt: skip

    assert statuses == [200, 401, 401, 401, 401]


async def test_a_role_that_settings_take_away_is_gone_for_open_sessions() -> None:
    sessions = FakeSessions()
    before = make_console(None, sessions, roles={DESK: {"ada@acme.com": ConsoleRole.OWNER}})
    after = make_console(None, sessions, roles={DESK: {"bob@acme.com": ConsoleRole.OWNER}})

    for app, status in ((before, 200), (after, 403)):
        async with browser_of(app) as client:
            await sign_in(client, sessions, "ada@acme.com")

            assert (await client.get("/console")).status_code == status


async def test_a_new_sign_in_opens_a_new_session_and_ends_the_one_before() -> None:
    sessions = FakeSessions(codes={"first", "second"})
    async with browser_of(make_console(None, sessions)) as client:
        client.cookies.set(COOKIE, "chosen-by-an-attacker", path="/console", domain="desk.local")
        await client.get("/console/login?code=first")
        first = next(iter(sessions.people))
        await client.get("/console/login?code=second")

    assert "chosen-by-an-attacker" not in sessions.people
    assert first not in sessions.people
    assert len(sessions.people) == 1


async def test_signing_out_everywhere_ends_the_sessions_of_every_browser() -> None:
    sessions = FakeSessions(codes={"first", "second"})
    app = make_console(None, sessions)
    async with browser_of(app) as one, browser_of(app) as other:
        await one.get("/console/login?code=first")
        await other.get("/console/login?code=second")
        page = (await one.get("/console")).text

        assert (await one.get("/console/logout/everywhere")).status_code == 405
        fields = {"csrf": read_forgery_token(page)}
        await post(one, "/console/logout/everywhere", fields)

        assert (await other.get("/console")).status_code == 401


async def test_a_store_of_sessions_that_is_away_opens_nothing() -> None:
    class AwaySessions(FakeSessions):
        async def read(self, token: str) -> str | None:
            raise ConnectionError

    gate = Gate(AwaySessions(), [DESK])
    app = FastAPI()
    router = APIRouter(route_class=make_route_class(gate, refuse, (ConnectionError,)))
    router.add_api_route("/console/view", view, methods=["GET"])
    app.include_router(router)
    async with browser_of(app) as client:
        client.cookies.set("refdesk_console", "token", domain="desk.local")

        assert (await client.get("/console/view")).status_code == 503
