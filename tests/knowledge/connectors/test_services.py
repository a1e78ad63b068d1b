"""The played services refuse what the descriptions of their interfaces do not allow."""

import httpx
import pytest

from tests.support.services import EMAIL, TOKEN, PlayedService, serve_confluence, serve_zendesk

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
    played, user = (
        (serve_confluence(), EMAIL) if name == "Confluence" else (serve_zendesk(), f"{EMAIL}/token")
    )
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
def test_a_wrong_token_is_refused_before_anything_is_shown(name: str) -> None:
    played = serve_confluence() if name == "Confluence" else serve_zendesk()
    with played as service:
        answer = fetch(service, REQUESTS[name][0], "somebody@else.example")

    assert (answer.status_code, answer.json()) == (401, {})


def ask(service: PlayedService, path: str, user: str) -> int:
    return fetch(service, path, user).status_code


def fetch(service: PlayedService, path: str, user: str) -> httpx.Response:
    return httpx.get(f"http://{service.host}{path}", auth=(user, TOKEN))
