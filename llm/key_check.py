"""Asks a vendor whether it accepts our key, before anybody asks a question.

One cheap request: the list of models. Only a clear refusal of the key counts. A key that may not
list models, a compatible server without such a list, and a vendor that is away all prove nothing.
"""

import structlog
from httpx2 import AsyncClient, HTTPError, Response

from llm.errors import MissingKey
from llm.real_request_guard import check_allowed
from llm.registry import Vendor

log = structlog.get_logger("llm")

LIMIT_SECONDS = 5.0
_OPENAI_URL = "https://api.openai.com/v1"
_GOOGLE_URL = "https://generativelanguage.googleapis.com"
_INVALID_KEY = "API_KEY_INVALID"
"""What Google says beside the status 400."""


async def check_key(provider: str, vendor: Vendor) -> None:
    """Raise `MissingKey` when the vendor refuses the key; log when it cannot be asked."""
    if not vendor.api_key:
        return
    url, headers = _request(provider, vendor, vendor.api_key)
    check_allowed(url)
    try:
        async with AsyncClient(timeout=LIMIT_SECONDS) as client:
            answer = await client.get(url, headers=headers)
    except (HTTPError, ValueError) as error:
        log.warning(
            "api_key_check_failed", vendor=provider, error=f"{type(error).__name__}: {error}"
        )
        return
    if _refuses(answer):
        raise MissingKey(
            f"expected a key that {provider} accepts in {provider.upper()}_API_KEY, found that "
            f"{url} refuses it with status {answer.status_code}"
        )


def _request(provider: str, vendor: Vendor, key: str) -> tuple[str, dict[str, str]]:
    if provider == "openai":
        base = _OPENAI_URL if vendor.base_url is None else vendor.base_url
        return f"{base.rstrip('/')}/models", {"Authorization": f"Bearer {key}"}
    base = _GOOGLE_URL if vendor.base_url is None else vendor.base_url
    return f"{base.rstrip('/')}/v1beta/models?pageSize=1", {"x-goog-api-key": key}


def _refuses(answer: Response) -> bool:
    return answer.status_code == 401 or (answer.status_code == 400 and _INVALID_KEY in answer.text)
