"""Asks a vendor whether it accepts our key, before the first question.

One cheap request: the list of models. Only a clear refusal of the key counts. A key that may not
list models, a compatible server without such a list, and an unreachable vendor prove nothing.
"""

import structlog
from httpx2 import AsyncClient, HTTPError, Response

from llm.errors import MissingKey
from llm.real_request_guard import check_allowed
from llm.vendors.catalogue import Vendor, VendorAccess

log = structlog.get_logger("llm")

LIMIT_SECONDS = 5.0
_INVALID_KEY = "API_KEY_INVALID"
"""The reason that Google returns with the status 400."""


async def check_key(vendor: Vendor, access: VendorAccess) -> None:
    """Raise `MissingKey` if the vendor refuses the key; log a warning if the request fails."""
    base = vendor.base_url if access.base_url is None else access.base_url
    if not access.api_key or base is None:
        return
    url = f"{base.rstrip('/')}{vendor.models_path}"
    headers = {name: value.format(key=access.api_key) for name, value in vendor.key_headers.items()}
    check_allowed(url)
    try:
        async with AsyncClient(timeout=LIMIT_SECONDS) as client:
            answer = await client.get(url, headers=headers)
    except (HTTPError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}"
        log.warning("api_key_check_failed", vendor=vendor.name, reason=reason)
        return
    if _refuses(answer):
        raise MissingKey(
            f"expected a key that {vendor.name} accepts in {vendor.key_variable}, found that "
            f"{url} refuses it with status {answer.status_code}"
        )


def _refuses(answer: Response) -> bool:
    return answer.status_code == 401 or (answer.status_code == 400 and _INVALID_KEY in answer.text)
