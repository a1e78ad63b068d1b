"""Loads the configuration of external tools: MCP servers and HTTP APIs with their tools.

```toml
[servers.weather]
command = ["weather-server", "--stdio"]          # or: url = "https://weather.example.org/mcp"
environment = { WEATHER_KEY = "${WEATHER_KEY}" } # no other variables are passed

[servers.weather.tools.get_forecast]
effect = "read"

[apis.tickets]
document = "tickets.yaml"                        # relative to this file
base_url = "https://tickets.example.org/v2"
headers = { Authorization = "Bearer ${TICKETS_TOKEN}" }

[apis.tickets.operations.createTicket]
effect = "dangerous"
name = "create_ticket"
```

Only tools in the file exist, with the effect class in the file. `${NAME}` is replaced by an
environment variable of this process.
"""

import os
import re
import tomllib
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Self
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    Field,
    JsonValue,
    StringConstraints,
    ValidationError,
    field_validator,
)
from pydantic import model_validator as check_model

from tools.calls import EffectClass, ToolCaller
from tools.errors import InvalidInput, InvalidToolSet, ToolFailed
from tools.outside.foreign_schemas import MOST_RESULT, ForeignSchema, clean, clean_line
from tools.tool import TIMEOUT_SECONDS, Tool

START_SECONDS = 10.0
ToolName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,63}$")]
"""A tool name that is accepted by every model vendor."""
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]{0,99})\}")
_PIN = r"^[0-9a-f]{32}$"
_UNSEEN = re.compile(r"[\x00-\x1f\x7f]")
HIDDEN = "[hidden]"
_SHORTEST = 4
_SHORTEST_INSIDE = 8
"""Minimum length of a secret that is redacted even within words."""
_SHOWN_KIND = 60


class OutsideEntry(BaseModel, frozen=True, extra="forbid"):
    """The operator's configuration of an external tool.

    If `is_source` is true, answers may use the text of its results as a source. `timeout_seconds`
    is in seconds, `most_cost_micros` in millionths of a USD, and `pin` is the digest of the
    definition.
    """

    name: ToolName | None = None
    description: str | None = Field(None, min_length=1, max_length=2_000)
    aliases: tuple[ToolName, ...] = ()
    timeout_seconds: float = Field(TIMEOUT_SECONDS, gt=0, le=600)
    most_cost_micros: int | None = Field(None, ge=0)
    pin: str | None = Field(None, pattern=_PIN)
    is_source: bool = False


class McpToolEntry(OutsideEntry):
    """A tool of an MCP server. The effect class is required, because it cannot be derived."""

    effect: EffectClass


class OperationEntry(OutsideEntry):
    """An operation of an HTTP API.

    The effect class defaults to `read` for GET and HEAD, and to `effect` for other methods.
    """

    effect: EffectClass | None = None
    headers: dict[str, str] = Field(default_factory=dict)


class McpServerEntry(BaseModel, frozen=True, extra="forbid"):
    """An MCP server: a command to start, or a URL."""

    command: tuple[str, ...] | None = Field(None, min_length=1)
    url: str | None = None
    environment: dict[str, str] = Field(default_factory=dict)
    headers: dict[str, str] = Field(default_factory=dict)
    directory: Path | None = None
    start_seconds: float = Field(START_SECONDS, gt=0, le=120)
    tools: dict[str, McpToolEntry] = Field(min_length=1)

    @field_validator("url")
    @classmethod
    def _check_url(cls, value: str | None) -> str | None:
        return None if value is None else check_address(value)

    @check_model(mode="after")
    def _check_kind(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise ValueError("expected either a command or a url")
        if self.url is not None and (self.environment or self.directory is not None):
            raise ValueError("environment and directory are only allowed with a command")
        if self.command is not None and self.headers:
            raise ValueError("headers are only allowed with a url")
        return self


class ApiEntry(BaseModel, frozen=True, extra="forbid"):
    """An HTTP API: its OpenAPI 3 document and base URL."""

    document: Path
    base_url: str
    headers: dict[str, str] = Field(default_factory=dict)
    operations: dict[str, OperationEntry] = Field(min_length=1)

    @field_validator("base_url")
    @classmethod
    def _check_url(cls, value: str) -> str:
        return check_address(value)


class OutsideTools(BaseModel, frozen=True, extra="forbid"):
    """The content of a configuration file of external tools."""

    servers: dict[ToolName, McpServerEntry] = Field(default_factory=dict)
    apis: dict[ToolName, ApiEntry] = Field(default_factory=dict)


class OutsideInputs(BaseModel, frozen=True):
    """Arguments that are valid for the schema of a tool."""

    arguments: dict[str, JsonValue]


class OutsideOutput(BaseModel, frozen=True):
    """A result: its text, and the types of content that are not passed to models."""

    text: str
    left_out: tuple[str, ...] = ()


class OutsideTool(Tool[OutsideInputs, OutsideOutput]):
    """A tool that runs on another server; the operator sets its name, effect class and limits."""

    inputs = OutsideInputs
    output = OutsideOutput
    is_source: bool

    def __init__(
        self,
        name: str,
        entry: OutsideEntry,
        effect: EffectClass,
        redact: Callable[[str], str] = str,
    ) -> None:
        self._redact = redact
        self.name = entry.name or name
        self.aliases = entry.aliases
        self.effect = effect
        self.timeout_seconds = entry.timeout_seconds
        self.is_source = entry.is_source
        self.most_cost_micros = entry.most_cost_micros

    @property
    @abstractmethod
    def schema(self) -> ForeignSchema | None:
        """The schema of the arguments, or None if it is not known yet."""

    @abstractmethod
    async def call(self, inputs: OutsideInputs, caller: ToolCaller) -> OutsideOutput:
        """Return the unredacted result of the server; raises the same errors as `run`."""

    async def run(self, inputs: OutsideInputs, caller: ToolCaller) -> OutsideOutput:
        """Return the result, with the configured secrets of the tool redacted."""
        try:
            output = await self.call(inputs, caller)
        except ToolFailed as error:
            raise type(error)(self._redact(str(error)), status=error.status) from error
        return output.model_copy(update={"text": self._redact(output.text)})

    def read_inputs(self, arguments: JsonValue) -> OutsideInputs:
        if not isinstance(arguments, dict):
            raise InvalidInput(f"expected the arguments as a JSON object, found {arguments!r:.80}")
        if self.schema is not None and (problems := self.schema.find_problems(arguments)):
            raise InvalidInput(problems)
        return OutsideInputs(arguments=arguments)

    def describe_inputs(self) -> dict[str, JsonValue]:
        return {"type": "object"} if self.schema is None else dict(self.schema.describe())

    def render(self, output: OutsideOutput) -> str:
        return "\n".join([output.text, *(f"[{kind} left out]" for kind in output.left_out)]).strip()


def load_outside_tools(path: Path, environment: Mapping[str, str] | None = None) -> OutsideTools:
    """Load a configuration file; raises `InvalidToolSet`.

    `environment` contains the variables that the file may use, by default those of this process.
    """
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidToolSet(f"the tools in {path.name!r} cannot be read: {error}") from error
    variables = os.environ if environment is None else environment
    try:
        return OutsideTools.model_validate(_fill(content, variables, path.name))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise InvalidToolSet(f"{path.name}: {place}: {first['msg']}") from error


def check_address(value: str) -> str:
    """Return the URL of a server unchanged; raises `ValueError` if it is invalid."""
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or _UNSEEN.search(value):
        raise ValueError("expected an address that begins with https:// or http://")
    if parts.username is not None or parts.query or parts.fragment:
        raise ValueError("the address must not contain a user, query or fragment")
    return value


def make_redaction(*configured: Mapping[str, str]) -> Callable[[str], str]:
    """Return a function that redacts the values of headers and environment variables.

    The last word of a value such as `Bearer abc` is redacted as well, because a server may quote
    only this word.
    """
    values = [value.strip() for mapping in configured for value in mapping.values()]
    words = {word for value in values for word in (value, value.rpartition(" ")[2])}
    secrets = sorted((word for word in words if len(word) >= _SHORTEST), key=len, reverse=True)
    if not secrets:
        return str
    pattern = re.compile("|".join(map(_match, secrets)))
    return lambda text: pattern.sub(HIDDEN, text)


def make_output(texts: Sequence[str], left_out: Sequence[str] = ()) -> OutsideOutput:
    """Return a result with cleaned and shortened text."""
    kinds = dict.fromkeys(clean_line(kind, _SHOWN_KIND) for kind in left_out)
    return OutsideOutput(text=clean("\n".join(texts), MOST_RESULT), left_out=tuple(kinds)[:20])


def _fill(value: Any, variables: Mapping[str, str], source: str) -> Any:
    """Return a value in which `${NAME}` in strings is replaced with variables."""
    if isinstance(value, dict):
        return {key: _fill(item, variables, source) for key, item in value.items()}
    if isinstance(value, list):
        return [_fill(item, variables, source) for item in value]
    if not isinstance(value, str):
        return value
    missing = [name for name in _VARIABLE.findall(value) if name not in variables]
    if missing:
        raise InvalidToolSet(f"{source}: the environment variable {missing[0]!r} is not set")
    return _VARIABLE.sub(lambda match: variables[match[1]], value)


def _match(secret: str) -> str:
    exact = re.escape(secret)
    return exact if len(secret) >= _SHORTEST_INSIDE else rf"(?<!\w){exact}(?!\w)"
