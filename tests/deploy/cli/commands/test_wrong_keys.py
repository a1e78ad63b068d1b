"""A wrong key of a vendor ends the start of whoever would use it, in one line."""

from pathlib import Path

import pytest

from tests.llm.test_key_check import VendorServer, vendor
from tests.support.app_harness import refdesk

pytestmark = [pytest.mark.slow, pytest.mark.redis]
__all__ = ["vendor"]


@pytest.mark.parametrize("vendor", [(401, "{}")], indirect=True)
@pytest.mark.parametrize(
    "words",
    [("worker", "--role", "response"), ("up",), ("serve", "--port", "0")],
    ids=lambda words: words[0],
)
def test_a_wrong_key_is_one_line_at_the_start(
    words: tuple[str, ...],
    vendor: VendorServer,
    tmp_path: Path,
) -> None:
    result = refdesk(
        tmp_path, *words,
        gen_model="gpt-5-mini@openai", openai_api_key="sk-wrong", openai_base_url=vendor.url,
    )  # fmt: skip

    assert result.returncode == 1
    assert "expected a key that openai accepts in OPENAI_API_KEY" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert "sk-wrong" not in result.stderr
