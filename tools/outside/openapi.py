"""Creates tools from the operations of OpenAPI 3 documents, and calls them.

References are followed only inside a document. Servers listed in a document are ignored: requests
go to the configured origin, redirects are not followed, and the size of response bodies is limited.
Values in the path are percent-encoded, and addresses are checked in the same way as in a crawl
(`outbound.resolution`). Headers are set only by the operator.
"""

import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import httpx2
from pydantic import JsonValue

from knowledge.documents.errors import ReadingError
from knowledge.documents.interchange.openapi import References, list_operations, parse_structured
from outbound.errors import AddressRefusedError, FetchError
from outbound.fetcher import GuardedTransport
from outbound.resolution import GuardedResolver
from tools.calls import EffectClass, ToolCaller
from tools.errors import (
    InvalidInput,
    InvalidSchema,
    InvalidToolSet,
    OutcomeUnknown,
    ToolFailed,
    ToolRejected,
)
from tools.outside.foreign_schemas import (
    MOST_DESCRIPTION,
    ForeignSchema,
    clean,
    clean_line,
    digest_definition,
)
from tools.outside.outside_tool import (
    ApiEntry,
    OperationEntry,
    OutsideInputs,
    OutsideOutput,
    OutsideTool,
    make_output,
    make_redaction,
)

BODY = "body"
"""The name of the argument that contains the request body."""
_TEMPLATE = re.compile(r"\{([^{}/]{1,100})\}")
_JSON_TYPE = re.compile(r"application/(?:[\w.-]{1,60}\+)?json")
_SCHEMAS = "#/components/schemas/"
_MOST_SCHEMAS = 200
_DEEPEST = 30
_MOST_NAMED = 20

Node = Mapping[str, Any]
MOST_BODY_BYTES = 1_000_000
_LONGEST_ERROR = 400
_READS = {"GET", "HEAD"}
_WAIT = {408, 425, 429}
"""Status codes of requests that were not processed and may be retried."""
_NO_CONTENT = {204, 205}
_SEPARATORS = re.compile(r"[/\\]")
_MOST_DECODED = 4
"""How many times proxies and the server may decode a value."""


@dataclass(frozen=True, slots=True)
class OperationParameter:
    """A path or query parameter. If `explodes` is true, it is repeated for each item of a list."""

    name: str
    place: str
    explodes: bool


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation; `headers` contains its required headers in lower case."""

    method: str
    path: str
    description: str
    parameters: tuple[OperationParameter, ...]
    headers: tuple[str, ...]
    schema: ForeignSchema


class OperationReader:
    """Reads the operations of a document by id; raises `InvalidToolSet`."""

    def __init__(self, path: Path) -> None:
        self._source = path.name
        try:
            document, _ = parse_structured(path.read_bytes(), is_json=path.suffix == ".json")
        except (OSError, ReadingError) as error:
            raise self._fail(f"the OpenAPI document cannot be read: {error}") from error
        version = document.get("openapi") if isinstance(document, dict) else None
        if not isinstance(version, str) or not version.startswith("3."):
            raise self._fail(f"expected an OpenAPI document of version 3, found {version!r:.80}")
        self._document: dict[str, Any] = document
        self._is_3_0 = version.startswith("3.0")
        self._references = References(document)
        self._operations = {
            str(operation.get("operationId")): (method, path, operation)
            for method, path, operation in list_operations(document, self._references)
        }

    def read(self, operation_id: str) -> Operation:
        """Return an operation of the document."""
        if operation_id not in self._operations:
            known = ", ".join(sorted(self._operations)[:_MOST_NAMED])
            raise self._fail(f"expected one of {known}, found {operation_id!r:.80}")
        method, path, operation = self._operations[operation_id]
        try:
            return self._read(method, path, operation)
        except InvalidSchema as error:
            raise self._fail(f"{operation_id}: {error}") from error

    def _read(self, method: str, path: str, operation: Node) -> Operation:
        given = {
            (parameter.get("name"), parameter.get("in")): parameter
            for parameter in map(self._references.resolve, operation["parameters"])
        }
        properties: dict[str, JsonValue] = {}
        required: list[str] = []
        parameters = []
        for (name, place), parameter in given.items():
            if place not in ("path", "query"):
                continue
            schema = self._references.resolve(parameter.get("schema"))
            if not isinstance(name, str) or name in properties or name == BODY:
                raise InvalidSchema(f"several parameters have the name {name!r:.80}")
            if "content" in parameter or schema.get("type") == "object":
                raise InvalidSchema(
                    f"the parameter {name!r:.80} must be a value or a list, not an object"
                )
            properties[name] = {"description": parameter.get("description", ""), **schema}
            if parameter.get("required") is True:
                required.append(name)
            parameters.append(
                OperationParameter(name, place, parameter.get("explode") is not False)
            )
        body = self._references.resolve(operation.get("requestBody"))
        if body:
            properties[BODY] = self._read_body(body)
            if body.get("required") is True:
                required.append(BODY)
        self._check_path(path, parameters)
        description = operation.get("description") or operation.get("summary") or f"{method} {path}"
        return Operation(
            method,
            path,
            clean(str(description), MOST_DESCRIPTION),
            tuple(parameters),
            tuple(_list_needed_headers(given)),
            ForeignSchema(self._make_schema(properties, required), is_trusted=True),
        )

    def _read_body(self, body: Node) -> JsonValue:
        content = body.get("content")
        for kind, media in content.items() if isinstance(content, dict) else ():
            if _JSON_TYPE.fullmatch(kind.partition(";")[0].strip()) and isinstance(media, dict):
                schema: JsonValue = media.get("schema", {})
                return schema
        raise InvalidSchema("only request bodies in JSON are supported")

    def _check_path(self, path: str, parameters: Sequence[OperationParameter]) -> None:
        named = {parameter.name for parameter in parameters if parameter.place == "path"}
        if not path.startswith("/") or path.startswith("//") or {".", ".."} & {*path.split("/")}:
            raise InvalidSchema(f"expected a path below the address, found {path!r:.80}")
        if set(_TEMPLATE.findall(path)) != named:
            raise InvalidSchema(
                f"the parameters of the path {path!r:.80} do not match its definition: {named}"
            )

    def _make_schema(
        self, properties: dict[str, JsonValue], required: list[str]
    ) -> dict[str, JsonValue]:
        schema: dict[str, JsonValue] = {
            "type": "object",
            "properties": properties,
            "required": list(required),
            "additionalProperties": False,
        }
        used = self._collect_schemas(schema)
        if used:
            schema["components"] = {"schemas": used}
        return _convert_schema(schema) if self._is_3_0 else schema

    def _collect_schemas(self, schema: JsonValue) -> dict[str, JsonValue]:
        """Return the named schemas that a schema references, directly or indirectly."""
        components = self._document.get("components")
        named = components.get("schemas") if isinstance(components, dict) else None
        known = named if isinstance(named, dict) else {}
        used: dict[str, JsonValue] = {}
        waiting: list[JsonValue] = [schema]
        while waiting:
            for name in _list_references(waiting.pop(), 0):
                if name in used or name not in known:
                    continue
                used[name] = known[name]
                waiting.append(known[name])
                if len(used) > _MOST_SCHEMAS:
                    raise InvalidSchema(f"expected at most {_MOST_SCHEMAS} schemas, found more")
        return used

    def _fail(self, reason: str) -> InvalidToolSet:
        return InvalidToolSet(f"{self._source}: {reason}")


class OperationTool(OutsideTool):
    """An operation of an HTTP API as a tool."""

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
        for parameter in self._operation.parameters:
            if parameter.place != "path":
                continue
            written = [_write(part) for part in _list_values(values.get(parameter.name))]
            if not written or any(map(_is_unsafe_segment, written)):
                raise InvalidInput(f"{parameter.name}: the value must not contain path segments")
            encoded[parameter.name] = ",".join(quote(part, safe="") for part in written)
        return encoded

    def _list_query(self, values: Mapping[str, JsonValue]) -> list[tuple[str, str]]:
        pairs = []
        for parameter in self._operation.parameters:
            if parameter.place != "query" or values.get(parameter.name) is None:
                continue
            written = [_write(part) for part in _list_values(values[parameter.name])]
            pairs += [
                (parameter.name, part)
                for part in (written if parameter.explodes else [",".join(written)])
            ]
        return pairs


class HttpApi:
    """Sends the requests of an HTTP API; `aclose` closes its connections."""

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
        """Return the response; raises `ToolRejected`, `ToolFailed` or `OutcomeUnknown`."""
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
            raise OutcomeUnknown(f"{self._name} did not respond: {_describe(error)}") from error

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _resolve(self) -> None:
        """Resolve the configured host once. Private networks are allowed only if it is in one."""
        if not self._is_resolved:
            _, host, port = self._origin
            await self._resolver.start_at(host, port)
            self._is_resolved = True

    async def _read(self, response: httpx2.Response) -> OutsideOutput:
        status, kind = response.status_code, response.headers.get("content-type", "")
        kind = kind.partition(";")[0].strip().lower()
        if 300 <= status < 400:
            raise ToolRejected(
                f"{self._name} responded with status {status}: redirects are not followed",
                status=status,
            )
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise OutcomeUnknown(
                f"{self._name} responded with status {status} in a compressed form", status=status
            )
        if status in _NO_CONTENT:
            return make_output([f"status {status}, no content"])
        text, is_cut = ("", False) if not _is_text(kind) else await self._read_text(response)
        if status in _WAIT:
            raise ToolFailed(
                f"{self._name} responded with status {status}: {_shorten(text)}", status=status
            )
        if 400 <= status < 500:
            raise ToolRejected(
                f"{self._name} responded with status {status}: {_shorten(text)}", status=status
            )
        if not response.is_success:
            raise OutcomeUnknown(
                f"{self._name} responded with status {status}: {_shorten(text)}", status=status
            )
        left_out = [kind or "content of unknown type"] if not _is_text(kind) else []
        return make_output([text], [*left_out, "the rest of the body"] if is_cut else left_out)

    async def _read_text(self, response: httpx2.Response) -> tuple[str, bool]:
        """Return at most `MOST_BODY_BYTES` of a body as text, and whether it was truncated."""
        body = bytearray()
        async for piece in response.aiter_raw():
            body += piece
            if len(body) > MOST_BODY_BYTES:
                return bytes(body[:MOST_BODY_BYTES]).decode("utf-8", "replace"), True
        return bytes(body).decode("utf-8", "replace"), False


def fill_path(path: str, values: Mapping[str, str]) -> str:
    """Return the path with its parameters replaced by encoded values."""
    return _TEMPLATE.sub(lambda match: values[match[1]], path)


@asynccontextmanager
async def open_apis(
    apis: Mapping[str, ApiEntry], folder: Path, resolver: GuardedResolver | None = None
) -> AsyncIterator[list[OperationTool]]:
    """Yield the tools of HTTP APIs, whose documents are in `folder`.

    Raises `InvalidToolSet`. Tests pass a `resolver`.
    """
    tools = []
    async with AsyncExitStack() as stack:
        for name, entry in apis.items():
            api = HttpApi(name, entry, resolver)
            stack.push_async_callback(api.aclose)
            reader = OperationReader(folder / entry.document)
            tools += [
                _make_tool(operation_id, reader.read(operation_id), operation, entry, api)
                for operation_id, operation in entry.operations.items()
            ]
        yield tools


def _list_needed_headers(given: Mapping[tuple[Any, Any], Node]) -> Iterator[str]:
    for (name, place), parameter in given.items():
        if place == "header" and parameter.get("required") is True:
            yield str(name).lower()


def _list_references(value: JsonValue, depth: int) -> Iterator[str]:
    if depth > _DEEPEST:
        raise InvalidSchema(f"expected a schema of at most {_DEEPEST} levels, found more")
    if isinstance(value, list):
        for item in value:
            yield from _list_references(item, depth + 1)
    elif isinstance(value, dict):
        reference = value.get("$ref")
        if isinstance(reference, str) and reference.startswith(_SCHEMAS):
            yield reference.removeprefix(_SCHEMAS).replace("~1", "/").replace("~0", "~")
        for item in value.values():
            yield from _list_references(item, depth + 1)


def _convert_schema(value: Any) -> Any:
    """Convert an OpenAPI 3.0 schema to JSON Schema, which OpenAPI 3.1 uses."""
    if isinstance(value, list):
        return [_convert_schema(item) for item in value]
    if not isinstance(value, dict):
        return value
    schema = {key: _convert_schema(item) for key, item in value.items()}
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        flag = schema.get(exclusive)
        if isinstance(flag, bool):
            del schema[exclusive]
            if flag and bound in schema:
                schema[exclusive] = schema.pop(bound)
    if schema.get("nullable") is True:
        del schema["nullable"]
        return {"anyOf": [schema, {"type": "null"}]}
    return schema


def _make_tool(
    operation_id: str, operation: Operation, entry: OperationEntry, api: ApiEntry, http: HttpApi
) -> OperationTool:
    given = {name.lower() for name in (*api.headers, *entry.headers)}
    if missing := [name for name in operation.headers if name not in given]:
        raise InvalidToolSet(f"{operation_id}: the header {missing[0]!r} is missing")
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


def _is_unsafe_segment(value: str) -> bool:
    """Return whether a value is empty, or contains `.` or `..` segments after decoding."""
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
