import pytest

from llm.errors import RealRequestForbidden
from llm.registry import Registry
from llm.vendors.catalogue import VendorAccess
from llm.vendors.wire import check_allowed, forbid_real_requests
from tests.llm.sample_task import PlainPrompts


@pytest.mark.parametrize(
    "url",
    [
        "https://api.openai.com/v1",
        "http://10.0.0.1/v1",
        "http://127.0.0.1.example.org",
        "http://localhost@example.org",
        "file:///etc",
        "",
    ],
)
def test_other_machines_are_out_of_reach_of_tests(url: str) -> None:
    forbid_real_requests()

    with pytest.raises(RealRequestForbidden, match="on this machine"):
        check_allowed(url)


@pytest.mark.parametrize("url", ["http://127.0.0.1:80", "http://[::1]:80/v1", "http://localhost"])
def test_this_machine_may_be_asked(url: str) -> None:
    forbid_real_requests()

    check_allowed(url)


@pytest.mark.parametrize(
    ("model", "embedder"),
    [
        ("gpt-5-mini@openai", "text-embedding-3-small@openai"),
        ("gemini-2.5-flash@google", "gemini-embedding-001@google"),
    ],
)
def test_a_client_of_a_real_vendor_cannot_even_be_made_in_a_test(model: str, embedder: str) -> None:
    access = {"openai": VendorAccess(api_key="k"), "google": VendorAccess(api_key="k")}
    registry = Registry(prompts=PlainPrompts(), access=access)

    with pytest.raises(RealRequestForbidden):
        registry.model(model)
    with pytest.raises(RealRequestForbidden):
        registry.embedder(embedder)
