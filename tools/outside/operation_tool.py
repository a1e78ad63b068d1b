"""Calls operations of HTTP interfaces: one origin, no redirects, bounded bodies, encoded values.

A request goes to the address that the operator configured and to no other: the path is that of the
operation, every value in it is percent-encoded, and the address of the host is checked as that of a
crawl is (`knowledge.crawling.resolution`). Headers are the operator's alone.
"""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import httpx2
from pydantic import JsonValue

from knowledge.crawling.crawl_values import AddressRefusedError, FetchError
from knowledge.crawling.fetcher import GuardedTransport
from knowledge.crawling.resolution import GuardedResolver
from tools.calls import EffectClass, ToolCaller
from tools.errors import InvalidInput, InvalidToolSet, OutcomeUnknown, ToolFailed, ToolRejected
from tools.outside.configuration import ApiEntry, OperationEntry, make_redaction
from tools.outside.foreign_schemas import ForeignSchema, digest_definition
from tools.outside.foreign_text import clean_line
from tools.outside.operations import BODY, Operation, OperationReader, fill_path
from tools.outside.outside_tool import OutsideInputs, OutsideOutput, OutsideTool, make_output

MOST_BODY_BYTES = 1_000_000
_LONGEST_ERROR = 400
_READS = {"GET", "HEAD"}
_WAIT = {408, 425, 429}
"""Statuses of requests that were not handled: a later one may be."""
_NO_CONTENT = {204, 205}
_SEPARATORS = re.compile(r"[/\\]")
_MOST_DECODED = 4
"""How often proxies and the server may decode a value."""


class OperationTool(OutsideTool):
    """An operation of an HTTP interface."""

    def __init__(
        self, operation_id: str, operation: Operation, entry: OperationEntry, api: "HttpApi"
    ) -> None:
        reads = EffectClass.READ if operation.method in _READS else EffectClass.EFFECT
        super().__init__(
            operation_id,
            entry,
            entry.effect or reads,
            make_redaction(entry.headers, api.headers),
        )
        self.description = entry.description or operation.description
        self._operation = operation
        self._api = api
        self._headers = entry.headers

    @property
    def schema(self) -> ForeignSchema:
        return self._operation.schema

    async def call(self, inputs: OutsideInputs, caller: ToolCaller) -> OutsideOutput:
        values = inputs.arguments
        path = fill_path(self._operation.path, self._encode_path(values))
        return await self._api.request(
            self._operation.method,
            path,
            query=self._list_query(values),
            body=values.get(BODY),
            headers=self._headers,
            seconds=self.timeout_seconds,
        )

    def _encode_path(self, values: Mapping[str, JsonValue]) -> dict[str, str]:
        encoded = {}
        for one in self._operation.parameters:
            if one.place != "path":
                continue
            written = [_write(part) for part in _list_values(values.get(one.name))]
            if not written or any(map(_leads_elsewhere, written)):
                raise InvalidInput(f"{one.name}: expected a value that is no part of a path")
            encoded[one.name] = ",".join(quote(part, safe="") for part in written)
        return encoded

    def _list_query(self, values: Mapping[str, JsonValue]) -> list[tuple[str, str]]:
        pairs = []
        for one in self._operation.parameters:
            if one.place != "query" or values.get(one.name) is None:
                continue
            written = [_write(part) for part in _list_values(values[one.name])]
            pairs += [
                (one.name, part) for part in (written if one.explodes else [",".join(written)])
            ]
        return pairs


class HttpApi:
    """Sends the requests of one interface; `aclose` closes its connections."""

    def __init__(self, name: str, entry: ApiEntry, resolver: GuardedResolver | None = None) -> None:
        self.headers = entry.headers
        self._name = name
        self._base = entry.base_url.rstrip("/")
        self._origin = _read_origin(entry.base_url)
        self._resolver = GuardedResolver() if resolver is None else resolver
        self._is_resolved = False
        self._client = httpx2.AsyncClient(
            transport=GuardedTransport(self._resolver),
            headers={"User-Agent": "refdesk", "Accept-Encoding": "identity", **entry.headers},
            trust_env=False,
            follow_redirects=False,
        )

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: list[tuple[str, str]],
        body: JsonValue,
        headers: Mapping[str, str],
        seconds: float,
    ) -> OutsideOutput:
        """Return the answer; raises `ToolRejected`, `ToolFailed` and `OutcomeUnknown`."""
        url = httpx2.URL(f"{self._base}{path}", params=query) if query else self._base + path
        if _read_origin(str(url)) != self._origin:
            raise ToolRejected(f"expected an address of {self._origin}")
        try:
            await self._resolve()
            async with self._client.stream(
                method, url, headers=dict(headers), timeout=seconds, json=body
            ) as response:
                return await self._read(response)
        except AddressRefusedError as error:
            raise ToolRejected(f"{self._name}: {error}") from error
        except (
            httpx2.ConnectError,
            httpx2.ConnectTimeout,
            httpx2.PoolTimeout,
            FetchError,
        ) as error:
            raise ToolFailed(f"{self._name} cannot be reached: {_describe(error)}") from error
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise OutcomeUnknown(f"{self._name} did not answer: {_describe(error)}") from error

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _resolve(self) -> None:
        """Allow the private network only where the configured address is in it."""
        if not self._is_resolved:
            _, host, port = self._origin
            await self._resolver.start_at(host, port)
            self._is_resolved = True

    async def _read(self, response: httpx2.Response) -> OutsideOutput:
        status, kind = response.status_code, response.headers.get("content-type", "")
        kind = kind.partition(";")[0].strip().lower()
        if 300 <= status < 400:
            raise ToolRejected(
                f"{self._name} answered {status}: redirects are not followed", status=status
            )
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise OutcomeUnknown(
                f"{self._name} answered {status} in a compressed form", status=status
            )
        if status in _NO_CONTENT:
            return make_output([f"status {status}, no content"])
        text, is_cut = ("", False) if not _is_text(kind) else await self._read_text(response)
        if status in _WAIT:
            raise ToolFailed(f"{self._name} answered {status}: {_shorten(text)}", status=status)
        if 400 <= status < 500:
            raise ToolRejected(f"{self._name} answered {status}: {_shorten(text)}", status=status)
        if not response.is_success:
            raise OutcomeUnknown(f"{self._name} answered {status}: {_shorten(text)}", status=status)
        left_out = [kind or "content of unknown type"] if not _is_text(kind) else []
        return make_output([text], [*left_out, "the rest of the body"] if is_cut else left_out)

    async def _read_text(self, response: httpx2.Response) -> tuple[str, bool]:
        """Return the beginning of a body, and whether there is more."""
        body = bytearray()
        async for piece in response.aiter_raw():
            body += piece
            if len(body) > MOST_BODY_BYTES:
                return bytes(body[:MOST_BODY_BYTES]).decode("utf-8", "replace"), True
        return bytes(body).decode("utf-8", "replace"), False


@asynccontextmanager
async def open_apis(
    apis: Mapping[str, ApiEntry], folder: Path, resolver: GuardedResolver | None = None
) -> AsyncIterator[list[OperationTool]]:
    """Yield the tools of interfaces; their documents are below `folder`.

    Raises `InvalidToolSet`. `resolver` replaces the addresses of hosts in tests.
    """
    tools = []
    async with AsyncExitStack() as stack:
        for name, entry in apis.items():
            api = HttpApi(name, entry, resolver)
            stack.push_async_callback(api.aclose)
            reader = OperationReader(folder / entry.document)
            tools += [
                _make_tool(operation_id, reader.read(operation_id), one, entry, api)
                for operation_id, one in entry.operations.items()
            ]
        yield tools


def _make_tool(
    operation_id: str, operation: Operation, entry: OperationEntry, api: ApiEntry, http: HttpApi
) -> OperationTool:
    given = {name.lower() for name in (*api.headers, *entry.headers)}
    if missing := [name for name in operation.headers if name not in given]:
        raise InvalidToolSet(f"{operation_id}: expected the header {missing[0]!r}, found none")
    digest = digest_definition(operation_id, operation.description, operation.schema.schema, None)
    if entry.pin is not None and entry.pin != digest:
        raise InvalidToolSet(
            f"{operation_id}: expected the pinned digest {entry.pin}, found {digest}"
        )
    return OperationTool(operation_id, operation, entry, http)


def _read_origin(url: str) -> tuple[str, str, int]:
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return parts.scheme, (parts.hostname or "").lower(), port


def _list_values(value: JsonValue) -> list[Any]:
    return [] if value is None else value if isinstance(value, list) else [value]


def _leads_elsewhere(value: str) -> bool:
    """Return whether a value is empty, or has a step up or down once a server decodes it."""
    for _ in range(_MOST_DECODED):
        if not value or {".", ".."} & {*_SEPARATORS.split(value)}:
            return True
        value = unquote(value)
    return False


def _write(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _is_text(kind: str) -> bool:
    is_structured = kind in ("application/json", "application/xml") or kind.endswith(
        ("+json", "+xml")
    )
    return not kind or kind.startswith("text/") or is_structured


def _shorten(text: str) -> str:
    return clean_line(text, _LONGEST_ERROR) or "no reason"


def _describe(error: Exception) -> str:
    return clean_line(str(error) or type(error).__name__, _LONGEST_ERROR)
