"""Verifies that Slack sent a request: first the headers, then the body after it was read."""

import hashlib
import hmac
import re
import time
from collections.abc import Callable, Mapping

from gateway.chat.webhook import WebhookRefusedError

TIME_HEADER = "X-Slack-Request-Timestamp"
SIGNATURE_HEADER = "X-Slack-Signature"
FRESH_SECONDS = 300
"""Slack's limit against replayed requests: an older timestamp is refused."""
_TIME = re.compile(r"[0-9]{1,12}", re.ASCII)
_SIGNATURE = re.compile(r"v0=[0-9a-f]{64}", re.ASCII)


class SlackSignature:
    """Verifies requests with the signing secret; each check raises `WebhookRefusedError`."""

    def __init__(self, secret: str, *, clock: Callable[[], float] = time.time) -> None:
        self._secret = secret.encode()
        self._clock = clock

    def check_headers(self, headers: Mapping[str, str]) -> None:
        """Refuse a request without a signature, or with an old one, before reading the body."""
        at, signature = headers.get(TIME_HEADER, ""), headers.get(SIGNATURE_HEADER, "")
        if not _TIME.fullmatch(at) or not _SIGNATURE.fullmatch(signature):
            raise WebhookRefusedError(
                401, "signature_invalid", "expected a request that Slack signed"
            )
        if abs(self._clock() - int(at)) > FRESH_SECONDS:
            raise WebhookRefusedError(
                401, "signature_expired", "expected a request with a recent signature of Slack"
            )

    def check_body(self, headers: Mapping[str, str], body: bytes) -> None:
        """Refuse a body that does not match the signature."""
        signed = f"v0:{headers[TIME_HEADER]}:".encode() + body
        digest = hmac.new(self._secret, signed, hashlib.sha256).hexdigest()
        if not hmac.compare_digest(f"v0={digest}", headers[SIGNATURE_HEADER]):
            raise WebhookRefusedError(
                401, "signature_invalid", "expected a request that Slack signed"
            )
