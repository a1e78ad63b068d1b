"""Fetches pages with limits on time, size, and rate, and checks each redirect."""

import asyncio
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import count
from types import TracebackType
from typing import Self

import httpx2

from outbound.addresses import normalise
from outbound.errors import FetchError, RedirectRefusedError
from outbound.resolution import GuardedResolver

REDIRECTS = frozenset({301, 302, 303, 307, 308})
_BUSY = frozenset({429, 503})
_FIRST_WAIT = 1.0
"""Seconds after the first refusal of a server that states no time; each further doubles them."""
_PIECE = 65_536
_LONGEST_HEADER = 2000
_ACCEPT = "text/html,application/xhtml+xml,text/markdown,text/plain,application/pdf,*/*;q=0.5"


@dataclass(frozen=True, slots=True)
class Validators:
    """The cache validators of a page, for conditional requests."""

    etag: str = ""
    last_modified: str = ""


MOST_REDIRECTS = 5

Allow = Callable[[str], bool]
"""Returns whether a URL may be opened."""
FindValidators = Callable[[str], Validators]
"""Returns the validators of a URL, which are empty if it was not fetched before."""


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """The limits of requests to one website.

    `delay` is the time between two requests in seconds. `seconds_per_page` is the time limit for
    one request including its body.
    """

    bytes_per_page: int = 20_000_000
    bytes_in_all: int = 1_000_000_000
    seconds_per_page: float = 30.0
    delay: float = 0.5
    longest_wait: float = 60.0
    """The longest `Retry-After` or `Crawl-delay` that is respected."""
    attempts: int = 3


@dataclass(frozen=True, slots=True)
class WebResponse:
    """The response to one request; the names of `headers` are in lower case."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes = b""

    def header(self, name: str) -> str:
        """Return a header, truncated to 2,000 characters, or an empty string if it is missing."""
        return self.headers.get(name, "")[:_LONGEST_HEADER]

    @property
    def media_type(self) -> str:
        """The media type without parameters, in lower case."""
        return self.header("content-type").partition(";")[0].strip().lower()


class Fetcher:
    """Fetches pages of one website. Use it as a context manager, which closes its connections.

    A change to `delay` takes effect with the next request. `headers` are sent with every request,
    including those to other hosts.
    """

    def __init__(
        self,
        limits: FetchLimits,
        resolver: GuardedResolver,
        user_agent: str,
        headers: Mapping[str, str] | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.delay = limits.delay
        self._clock = clock
        self._sleep = sleep
        self._limits = limits
        self._left = limits.bytes_in_all
        self._next = 0.0
        self._turn = asyncio.Lock()
        self._client = httpx2.AsyncClient(
            transport=GuardedTransport(resolver),
            timeout=limits.seconds_per_page,
            headers={
                "User-Agent": user_agent,
                "Accept": _ACCEPT,
                "Accept-Encoding": "gzip",
                **({} if headers is None else headers),
            },
            # An HTTP proxy would resolve hosts itself, so their addresses could not be checked.
            trust_env=False,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._client.aclose()

    @property
    def is_exhausted(self) -> bool:
        """Whether the byte limit of all pages is used up."""
        return self._left <= 0

    async def get(
        self, url: str, *, etag: str = "", last_modified: str = "", most_bytes: int | None = None
    ) -> WebResponse:
        """Return the response for one URL; redirects are not followed.

        If a server is busy (429, 503), the request is retried after the time that it states, or
        otherwise after increasing pauses of up to `longest_wait`. Raises `FetchError` and
        `AddressRefusedError`.
        """
        conditions = {"If-None-Match": etag, "If-Modified-Since": last_modified}
        headers = {name: value for name, value in conditions.items() if value}
        most = self._limits.bytes_per_page if most_bytes is None else most_bytes
        for attempt in count(1):
            await self._wait_turn()
            answer = await self._request(url, headers, most)
            if answer.status not in _BUSY or attempt >= self._limits.attempts:
                return answer
            wait = find_wait(answer, time.time())
            if wait is None:
                wait = min(_FIRST_WAIT * 2 ** (attempt - 1), self._limits.longest_wait)
            elif wait > self._limits.longest_wait:
                raise FetchError(
                    f"the server returned status {answer.status} and requested a wait of "
                    f"{wait:.0f} s"
                )
            self._next = max(self._next, self._clock() + max(wait, self.delay))
        raise AssertionError

    async def _wait_turn(self) -> None:
        async with self._turn:
            await self._sleep(max(0.0, self._next - self._clock()))
            self._next = self._clock() + self.delay

    async def _request(self, url: str, headers: Mapping[str, str], most: int) -> WebResponse:
        seconds = self._limits.seconds_per_page
        try:
            async with asyncio.timeout(seconds):
                async with self._client.stream("GET", url, headers=headers) as response:
                    response_headers = {
                        name.lower(): value for name, value in response.headers.items()
                    }
                    answer = WebResponse(url, response.status_code, response_headers)
                    if not response.is_success:
                        return answer
                    body = await self._read_body(response, most)
                    return WebResponse(url, response.status_code, response_headers, body)
        except TimeoutError as error:
            raise FetchError(
                f"the server did not finish its response within {seconds:.3g} s"
            ) from error
        except httpx2.TimeoutException as error:
            raise FetchError(f"the server did not respond within {seconds:.3g} s") from error
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            reason = str(error) or type(error).__name__
            raise FetchError(f"the server cannot be reached: {reason}") from error

    async def _read_body(self, response: httpx2.Response, most: int) -> bytes:
        body = bytearray()
        async for piece in _decompress(response):
            body += piece
            self._left -= len(piece)
            if len(body) > most:
                raise FetchError(f"the page is larger than {most} bytes")
            if self._left < 0:
                raise FetchError(f"the crawl is larger than {self._limits.bytes_in_all} bytes")
        return bytes(body)


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Connects to a checked IP address, so that a DNS entry that changes later has no effect.

    The certificate is checked against the host name. `make_transport` creates the inner transport.
    """

    def __init__(
        self,
        resolver: GuardedResolver,
        make_transport: Callable[[], httpx2.AsyncBaseTransport] = httpx2.AsyncHTTPTransport,
    ) -> None:
        self._resolver = resolver
        self._inner = make_transport()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request to the checked address of its host."""
        host = request.url.host
        port = request.url.port or (443 if request.url.scheme == "https" else 80)
        address = await self._resolver.choose(host, port)
        request.url = request.url.copy_with(host=address)
        request.extensions = {**request.extensions, "sni_hostname": host}
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


def find_wait(answer: WebResponse, now: float) -> float | None:
    """Return the seconds in `Retry-After`, or None if it is missing or invalid."""
    stated = answer.header("retry-after").strip()
    if stated.isascii() and stated.isdigit():
        return float(stated[:9])
    try:
        moment = parsedate_to_datetime(stated)
    except (ValueError, TypeError):
        return None
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return max(0.0, (aware - datetime.fromtimestamp(now, UTC)).total_seconds())


async def follow(
    fetcher: Fetcher,
    url: str,
    allow: Allow,
    find_validators: FindValidators = lambda _url: Validators(),
    *,
    most_bytes: int | None = None,
) -> WebResponse:
    """Follow redirects and return the final response, whose `url` is the final URL.

    Raises `RedirectRefusedError`, `FetchError` and `AddressRefusedError`.
    """
    trail = [url]
    while len(trail) <= MOST_REDIRECTS + 1:
        known = find_validators(trail[-1])
        answer = await fetcher.get(
            trail[-1],
            etag=known.etag,
            last_modified=known.last_modified,
            most_bytes=most_bytes,
        )
        if answer.status not in REDIRECTS:
            return answer
        target = normalise(answer.header("location"), trail[-1])
        if target is None:
            raise FetchError("the page redirects to a URL that is not a web address")
        if target in trail:
            raise FetchError(f"the page redirects in a loop, to {target} again")
        if not allow(target):
            raise RedirectRefusedError(
                f"the page redirects to {target}, which is not part of the crawl"
            )
        trail.append(target)
    raise FetchError(f"the page redirects more than {MOST_REDIRECTS} times")


async def _decompress(response: httpx2.Response) -> AsyncIterator[bytes]:
    """Yield the decompressed body in pieces of limited size."""
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding in ("", "identity"):
        async for piece in response.aiter_raw(_PIECE):
            yield piece
        return
    if encoding not in ("gzip", "x-gzip"):
        raise FetchError(
            f"the body is encoded as {encoding[:40]!r}; only gzip and no encoding are supported"
        )
    inflater = zlib.decompressobj(wbits=31)
    async for piece in response.aiter_raw(_PIECE):
        rest = piece
        while rest and not inflater.eof:
            try:
                yield inflater.decompress(rest, _PIECE)
            except zlib.error as error:
                raise FetchError(f"the gzip encoding of the body is damaged: {error}") from (error)
            rest = inflater.unconsumed_tail
