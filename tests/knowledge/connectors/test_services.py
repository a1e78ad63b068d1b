"""The played services refuse what the descriptions of their interfaces do not allow."""

from contextlib import AbstractContextManager

import httpx
import pytest

from tests.support.services import (
    EMAIL,
    TOKEN,
    PlayedService,
    Wiki,
    serve_confluence,
    serve_zendesk,
)

REQUESTS = {
    "Confluence": (
        "/wiki/api/v2/spaces?limit=250",
        "/wiki/api/v2/spaces?limit=251",
        "/wiki/api/v2/spaces?start=1",
        "/wiki/api/v2/spaces?cursor=invented",
    ),
    "Zendesk": (
        "/api/v2/help_center/articles?page[size]=100",
        "/api/v2/help_center/articles?page[size]=101",
        "/api/v2/help_center/articles?per_page=9",
        "/api/v2/help_center/articles?page[size]=9&page[after]=invented",
    ),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_greater_page_an_unknown_parameter_and_an_invented_cursor_are_refused(name: str) -> None:
    played, user = open_service(name)
    with played as service:
        allowed, *refused = (ask(service, path, user) for path in REQUESTS[name])
        assert len(service.refused) == 3
        service.refused.clear()

    assert allowed != 400
    assert refused == [400, 400, 400]


def test_a_list_of_zendesk_without_a_size_has_no_cursor() -> None:
    with serve_zendesk() as service:
        service.answers["/api/v2/help_center/articles"] = [{"id": 1}, {"id": 2}, {"id": 3}]
        pages = [
            fetch(service, f"/api/v2/help_center/articles{query}", f"{EMAIL}/token")
            for query in ("", "?page[size]=1")
        ]

    assert "meta" not in pages[0].json()
    assert [len(pages[1].json()["articles"]), pages[1].json()["meta"]["has_more"]] == [1, True]


@pytest.mark.parametrize("name", REQUESTS)
def test_more_requests_than_a_window_allows_are_refused_until_it_is_over(name: str) -> None:
    played, user = open_service(name)
    now = [0.0]
    with played as service:
        service.in_a_window, service.clock = 2, lambda: now[0]
        path = REQUESTS[name][0]
        first, second, third = (fetch(service, path, user) for _ in range(3))
        now[0] = 60.0
        later = fetch(service, path, user)

    assert 429 not in {first.status_code, second.status_code, later.status_code}
    assert (third.status_code, third.headers["Retry-After"]) == (429, "60")


@pytest.mark.parametrize(("requested", "members"), [(200, 2), (1, 1)])
def test_a_page_of_members_has_no_more_than_the_system_allows(requested: int, members: int) -> None:
    with serve_confluence() as service:
        service.most_members = 2
        Wiki(service).add_group("staff", "ann", "bob", "eve")
        path = f"/wiki/rest/api/group/staff-id/membersByGroupId?limit={requested}"
        page = fetch(service, path, EMAIL).json()

    assert len(page["results"]) == page["size"] == members
    assert f"start={members}" in page["_links"]["next"]


@pytest.mark.parametrize("name", REQUESTS)
def test_a_wrong_token_is_refused_before_anything_is_shown(name: str) -> None:
    played = serve_confluence() if name == "Confluence" else serve_zendesk()
    with played as service:
        answer = fetch(service, REQUESTS[name][0], "somebody@else.example")

    assert (answer.status_code, answer.json()) == (401, {})


def open_service(name: str) -> tuple[AbstractContextManager[PlayedService], str]:
    """Return a service, and the name of the user whom it knows."""
    if name == "Confluence":
        return serve_confluence(), EMAIL
    return serve_zendesk(), f"{EMAIL}/token"


def ask(service: PlayedService, path: str, user: str) -> int:
    return fetch(service, path, user).status_code


def fetch(service: PlayedService, path: str, user: str) -> httpx.Response:
    return httpx.get(f"http://{service.host}{path}", auth=(user, TOKEN))
