"""The tools of MCP servers. Their descriptions are shown to models, but not trusted.

The operator configures which tools exist and their effect classes; see
`tools.outside.outside_tool`. A tool is not called if its definition has changed since startup, or
differs from its pin.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any

import structlog
from mcp import MCPError
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
)
from mcp_types import Tool as Definition
from pydantic import JsonValue, TypeAdapter, ValidationError

from tools.calls import ToolCaller
from tools.errors import InvalidInput, InvalidSchema, OutcomeUnknown, ToolFailed, ToolRejected
from tools.outside.foreign_schemas import (
    MOST_DESCRIPTION,
    MOST_RESULT,
    ForeignSchema,
    clean,
    clean_line,
    digest_definition,
)
from tools.outside.mcp_connection import McpConnection, ServerEnd, open_address, open_process
from tools.outside.outside_tool import (
    McpServerEntry,
    McpToolEntry,
    OutsideInputs,
    OutsideOutput,
    OutsideTool,
    make_output,
    make_redaction,
)

_LONGEST_ERROR = 400
_JSON: TypeAdapter[JsonValue] = TypeAdapter(JsonValue)

log = structlog.get_logger("tools")


class McpTool(OutsideTool):
    """A tool of an MCP server."""

    def __init__(
        self, server: str, remote: str, entry: McpToolEntry, redact: Callable[[str], str] = str
    ) -> None:
        super().__init__(remote, entry, entry.effect, redact)
        self.remote = remote
        self.connection: McpConnection | None = None
        self.description = entry.description or f"The tool {remote!r} of {server!r}."
        self._entry = entry
        self._digest: str | None = None
        self._schema: ForeignSchema | None = None
        self._output: ForeignSchema | None = None
        self._fault = ""

    @property
    def schema(self) -> ForeignSchema | None:
        return self._schema

    def update(self, definition: Definition | None) -> None:
        """Compare the definition (None if the server does not list the tool) with the first one or
        with the pin.
        """
        if definition is None:
            self._fault = f"the server has no tool {self.remote!r}"
            return
        schema, output = definition.input_schema, definition.output_schema
        try:
            digest = digest_definition(self.remote, definition.description or "", schema, output)
        except (RecursionError, TypeError, ValueError) as error:
            self._fault = f"the definition is not valid JSON: {type(error).__name__}"
            return
        expected = self._entry.pin or self._digest or digest
        if digest != expected:
            since = "pinned" if self._entry.pin else "read at the start"
            self._fault = (
                f"the definition of {self.remote!r} has changed: expected the digest {expected} "
                f"that was {since}, found {digest}"
            )
            return
        self._fault = ""
        if self._digest is None:
            self._accept(definition, digest)

    def _accept(self, definition: Definition, digest: str) -> None:
        try:
            self._schema = ForeignSchema(definition.input_schema)
            if definition.output_schema is not None:
                self._output = ForeignSchema(definition.output_schema, is_input=False)
        except InvalidSchema as error:
            self._schema = None
            self._fault = f"the schema of {self.remote!r} cannot be used: {error}"
            return
        self._digest = digest
        if self._entry.description is None and definition.description:
            self.description = clean(definition.description, MOST_DESCRIPTION)

    async def call(self, inputs: OutsideInputs, caller: ToolCaller) -> OutsideOutput:
        if self.connection is None:
            raise ToolFailed("there is no connection to the server")
        await self.connection.check()
        if self._fault:
            raise ToolRejected(self._fault)
        # The schema may have just been loaded, if the server was unavailable at the start.
        if self._schema is not None and (problems := self._schema.find_problems(inputs.arguments)):
            raise InvalidInput(problems)
        try:
            result = await self.connection.call(self.remote, inputs.arguments)
        except ConnectionError as error:
            raise OutcomeUnknown(str(error)) from error
        except MCPError as error:
            reason = clean_line(str(error), _LONGEST_ERROR)
            raise ToolRejected(
                f"the server returned an error: {reason}", status=error.code
            ) from error
        except ValidationError as error:
            raise OutcomeUnknown("the result does not have the form that MCP requires") from error
        return self._read(result)

    def _read(self, result: CallToolResult) -> OutsideOutput:
        texts, left_out = _read_content(result.content)
        if result.is_error:
            reason = clean_line(" ".join(texts), _LONGEST_ERROR) or "no reason"
            raise ToolRejected(f"the tool reports an error: {reason}")
        written = _JSON.dump_json(result.structured_content).decode()
        if self._output is not None:
            self._check_output(result.structured_content, len(written))
        if not texts and result.structured_content is not None:
            texts = [written]
        return make_output(texts, left_out)

    def _check_output(self, content: JsonValue, size: int) -> None:
        if content is None or self._output is None:
            raise OutcomeUnknown("the structured result that the tool's schema requires is missing")
        if size > MOST_RESULT:
            raise OutcomeUnknown(f"expected a result of at most {MOST_RESULT} bytes, found {size}")
        if problems := self._output.find_problems(content):
            raise OutcomeUnknown(f"the result does not match the tool's schema: {problems}")


@asynccontextmanager
async def open_servers(
    servers: Mapping[str, McpServerEntry], *, clock: Callable[[], float] = time.monotonic
) -> AsyncIterator[list[McpTool]]:
    """Yield the tools of servers, which stay connected inside the context.

    If a server is unavailable, this is logged. Its tools are included, and each call tries to
    connect.
    """
    opened = [_make_server(name, entry, clock) for name, entry in servers.items()]
    try:
        async with asyncio.TaskGroup() as group:
            serving = [group.create_task(connection.serve()) for connection, _ in opened]
            try:
                await asyncio.gather(*(_start(connection) for connection, _ in opened))
                yield [tool for _, tools in opened for tool in tools]
            finally:
                for (connection, _), task in zip(opened, serving, strict=True):
                    connection.stop()
                    task.cancel()
    except BaseExceptionGroup as errors:
        # Unwrap an exception of the context body from its group.
        if len(errors.exceptions) == 1:
            raise errors.exceptions[0] from errors.exceptions[0].__cause__
        raise


def _read_content(content: Sequence[Any]) -> tuple[list[str], list[str]]:
    """Return the texts in a result, and the types of its other content."""
    texts: list[str] = []
    left_out: list[str] = []
    for block in content:
        if isinstance(block, TextContent):
            texts.append(block.text[:MOST_RESULT])
        elif isinstance(block, ImageContent | AudioContent):
            left_out.append(f"{block.type} {block.mime_type}")
        elif isinstance(block, ResourceLink):
            left_out.append("resource link")
        elif isinstance(block, EmbeddedResource):
            if isinstance(block.resource, BlobResourceContents):
                left_out.append(f"resource {block.resource.mime_type or 'of unknown type'}")
            else:
                texts.append(block.resource.text[:MOST_RESULT])
    return texts, left_out


async def _start(connection: McpConnection) -> None:
    try:
        await connection.check()
    except ToolFailed as error:
        log.warning("mcp_server_unavailable", server=connection.name, error=str(error))


def _make_server(
    name: str, entry: McpServerEntry, clock: Callable[[], float]
) -> tuple[McpConnection, list[McpTool]]:
    redact = make_redaction(entry.headers, entry.environment)
    tools = [
        McpTool(name, remote, tool_entry, redact) for remote, tool_entry in entry.tools.items()
    ]
    connection = McpConnection(
        name,
        partial(_open_streams, entry),
        partial(_update_tools, tools),
        start_seconds=entry.start_seconds,
        clock=clock,
        redact=redact,
    )
    for tool in tools:
        tool.connection = connection
    return connection, tools


def _update_tools(tools: Sequence[McpTool], definitions: Sequence[Definition]) -> None:
    by_name = {definition.name: definition for definition in definitions}
    for tool in tools:
        tool.update(by_name.get(tool.remote))


def _open_streams(entry: McpServerEntry, end: ServerEnd) -> AbstractAsyncContextManager[Any]:
    if entry.url is not None:
        seconds = max(tool.timeout_seconds for tool in entry.tools.values())
        return open_address(entry.url, entry.headers, seconds)
    return open_process(entry.command or (), entry.environment, entry.directory, end)
