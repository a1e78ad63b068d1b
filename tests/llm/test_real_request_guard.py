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


@pytest.mark.parametrize("setting", ["gpt-5-mini@openai", "gemini-2.5-flash@google"])
def test_a_real_vendor_cannot_even_be_made_in_a_test(setting: str) -> None:
    registry = Registry(
        prompts=PlainPrompts(),
        access={"openai": VendorAccess(api_key="k"), "google": VendorAccess(api_key="k")},
    )

    with pytest.raises(RealRequestForbidden):
        registry.model(setting)


@pytest.mark.parametrize(
    "setting", ["text-embedding-3-small@openai", "gemini-embedding-001@google"]
)
def test_a_real_embedder_cannot_even_be_made_in_a_test(setting: str) -> None:
    registry = Registry(
        access={"openai": VendorAccess(api_key="k"), "google": VendorAccess(api_key="k")}
    )

    with pytest.raises(RealRequestForbidden):
        registry.embedder(setting)
