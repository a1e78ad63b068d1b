"""The played services refuse what the descriptions of their interfaces do not allow."""

import httpx
import pytest

from tests.support.services import EMAIL, TOKEN, PlayedService, serve_confluence, serve_zendesk

REQUESTS = {
    "Confluence": (
        "/wiki/api/v2/spaces?limit=250",
        "/wiki/api/v2/spaces?limit=251",
        "/wiki/api/v2/spaces?start=1",
    ),
    "Zendesk": (
        "/api/v2/help_center/articles?page[size]=100",
        "/api/v2/help_center/articles?page[size]=101",
        "/api/v2/help_center/articles?per_page=9",
    ),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_greater_page_and_an_unknown_parameter_are_refused(name: str) -> None:
    played, user = (
        (serve_confluence(), EMAIL) if name == "Confluence" else (serve_zendesk(), f"{EMAIL}/token")
    )
    with played as service:
        allowed, *refused = (ask(service, path, user) for path in REQUESTS[name])
        assert len(service.refused) == 2
        service.refused.clear()

    assert allowed != 400
    assert refused == [400, 400]


def ask(service: PlayedService, path: str, user: str) -> int:
    return httpx.get(f"http://{service.host}{path}", auth=(user, TOKEN)).status_code
