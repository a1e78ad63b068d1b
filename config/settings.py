"""Settings of the processes, and the class that combines all settings (`docs/settings.md`)."""

from pathlib import Path
from typing import Literal, TypeVar

from pydantic import Field, TypeAdapter, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict
from pydantic_settings import SettingsError as UnreadableSetting

from config.answer_settings import AnswerSettings
from config.channel_settings import ChatSettings, ConsoleSettings, HttpSettings, VisitorSettings
from config.domain_settings import DomainSettings
from config.env_file import check_unnamed_file, find_env_file
from config.errors import SettingsError
from config.model_settings import (
    LOCAL_SERVERS,
    SETTINGS_OF_VENDORS,
    ModelSettings,
    VendorSettings,
)
from config.notification_settings import NotificationSettings, TelemetrySettings
from config.storage_settings import (
    HOUR_SECONDS,
    IngestionSettings,
    RetentionSettings,
    StorageSettings,
)
from config.way_settings import SwarmSettings, WaySettings
from envelope.role import Role

T = TypeVar("T")

ROLES = frozenset(role.value for role in Role if role is not Role.INGESTION)
"""The roles whose instances and concurrency can be set."""

EMPTY_HAS_A_MEANING = ("embedding_question_prefix", "embedding_document_prefix")
"""Optional settings for which an empty value differs from unset: it means no prefix."""

_EXPECTED = {
    "dict_type": "an object",
    "model_type": "an object",
    "list_type": "a list",
    "tuple_type": "a list",
    "string_type": "a text",
    "missing": "a value",
    "extra_forbidden": "no value, because this name is unknown",
}
"""What is expected, by pydantic error type."""
_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (dict, "an object"), (list, "a list"), (str, "a text"), ((bool, int, float), "a number"),
)  # fmt: skip


class Settings(
    DomainSettings,
    ModelSettings,
    VendorSettings,
    AnswerSettings,
    StorageSettings,
    RetentionSettings,
    IngestionSettings,
    HttpSettings,
    VisitorSettings,
    ConsoleSettings,
    ChatSettings,
    NotificationSettings,
    WaySettings,
    SwarmSettings,
    TelemetrySettings,
    BaseSettings,
):
    """Processes, shards and logs; also collects all other settings. Times are in seconds."""

    model_config = SettingsConfigDict(env_file_encoding="utf-8", extra="ignore", frozen=True)

    shards: int = Field(
        1,
        ge=1,
        le=1024,
        description="number of streams of each role; cannot be changed after the first start",
    )
    shard_quota: int = Field(
        10_000,
        ge=1,
        description="maximum number of open questions of a shard; over HTTP, additional questions "
        "wait for up to 20 seconds and are then rejected",
    )
    lease_seconds: float = Field(
        15.0,
        ge=1,
        description="time after which another worker takes over the entries of a worker that died",
    )
    instances: dict[str, int] = Field(
        {},
        description="number of instances per role (a JSON object); roles that are not listed keep "
        "their default",
    )
    concurrency: dict[str, int] = Field(
        {},
        description="number of envelopes that one instance of a role processes concurrently (a "
        "JSON object)",
    )
    health_port: int = Field(
        0,
        ge=0,
        le=65535,
        description="port on which every process serves /healthz, /readyz and /metrics without a "
        "key; 0: none",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "warning", description="minimum level of log events"
    )

    @field_validator("*", mode="before")
    @classmethod
    def _empty_is_unset(cls, value: object, info: ValidationInfo) -> object:
        name = str(info.field_name)
        is_optional = cls.model_fields[name].default is None and name not in EMPTY_HAS_A_MEANING
        return None if is_optional and value == "" else value

    @field_validator("instances", "concurrency")
    @classmethod
    def _check_roles(cls, value: dict[str, int]) -> dict[str, int]:
        unknown = sorted(set(value) - ROLES)
        if unknown:
            raise ValueError(f"expected roles of {sorted(ROLES)}, found {unknown}")
        if any(number < 1 for number in value.values()):
            raise ValueError(f"expected numbers of at least 1, found {value}")
        return value

    @property
    def data_place(self) -> tuple[Path, str, str]:
        """The data folder, the tenant and the name of the assistant."""
        return self.refdesk_data, *self.assistant_key

    def of_assistants(self) -> list["Settings"]:
        """Return the settings of every assistant, starting with the main one."""
        further = [
            self.model_copy(
                update={
                    "tenant": assistant.tenant or self.tenant,
                    "assistant": assistant.assistant,
                    "domain_name": assistant.domain_name,
                    "domain_scope": assistant.domain_scope,
                    "glossary": assistant.glossary,
                    "prompts_folder": assistant.prompts_folder,
                    "documentation_url": assistant.documentation_url,
                    "way": _choose(assistant.way, self.way),
                    "tool_set": _choose(assistant.tool_set, self.tool_set),
                    "domain_tone": _choose(assistant.domain_tone, self.domain_tone),
                    "domain_formatting": _choose(
                        assistant.domain_formatting, self.domain_formatting
                    ),
                }
            )
            for assistant in self.assistants
        ]
        named = {settings.assistant_key: settings for settings in further}
        return [named.pop(self.assistant_key, self), *named.values()]

    @property
    def index_location(self) -> str:
        """The address of the index server or the path of the data folder, for display."""
        return self.qdrant_url or str(self.refdesk_data.resolve())

    @property
    def result_seconds(self) -> float | None:
        """How long this assistant's replies and journals are stored; None selects the default."""
        kept = self.result_seconds_of(*self.assistant_key)
        return None if kept == self.result_ttl_hours * HOUR_SECONDS else kept

    @property
    def keeps_records(self) -> bool:
        """Whether the questions of any assistant are recorded."""
        served = (settings.assistant_key for settings in self.of_assistants())
        return any(self.records_days_of(*assistant) > 0 for assistant in served)

    @property
    def has_vendor_embedding(self) -> bool:
        """Whether a vendor embeds documents and questions, instead of a model on this machine."""
        return self.embedding_model.rpartition("@")[2] in {
            *(name for name, _ in SETTINGS_OF_VENDORS),
            *LOCAL_SERVERS,
            *self.compatible_servers,
        }

    @property
    def combines_understanding(self) -> bool:
        """Whether a single call is made for translation, essence, and scope; see `COMBINE_CALLS`.

        This is false if a folder of prompts replaces the prompt of one of these tasks but not that
        of the combined call, because the replaced prompt would not be used.
        """
        tasks = ("translate", "essence", "scope")
        models = {self.model_of(task) for task in tasks}
        if not self.combine_calls or len(models) > 1 or models == {"offline"}:
            return False
        folder = self.prompts_folder
        if folder is None or (folder / "understand.txt").exists():
            return True
        return not any((folder / f"{task}.txt").exists() for task in tasks)


def load_settings(**changes: object) -> Settings:
    """Return the settings; raises `SettingsError` with one line for each invalid setting."""
    file = None
    if "_env_file" not in changes:
        file = find_env_file()
        changes = {**changes, "_env_file": None if file is None else file.path}
    try:
        if file is not None:
            check_unnamed_file(Settings, file)
        return Settings(**changes)  # type: ignore[arg-type] # checked by pydantic
    except UnicodeDecodeError as error:
        raise SettingsError(f"{changes['_env_file']}: expected UTF-8, found {error}") from error
    except ValueError as error:
        raise SettingsError(_lines(error)) from error


def _lines(error: ValueError) -> str:
    details = getattr(error, "errors", None)
    if isinstance(error, UnreadableSetting):
        # Its text contains the field in double quotes, and internal class names.
        name = str(error).split('"')[1].upper()
        usual = '["a", "b"] for a list or {"a": 1} for an object'
        return f"{name}: expected JSON, such as {_find_example(name) or usual}"
    if not callable(details):
        return str(error)
    lines = []
    for detail in details(include_url=False):
        if detail["type"] == "default_factory_not_called":
            # A default that is derived from other settings; one of those has the error.
            continue
        name, *inner = [*map(str, detail["loc"])] or [""]
        message = detail["msg"].removeprefix("Value error, ")
        if detail["type"] in _EXPECTED:
            kind = "nothing" if detail["type"] == "missing" else _name_kind(detail["input"])
            message = f"expected {_EXPECTED[detail['type']]}, found {kind}"
            if example := _find_example(name):
                message += f"; such as {name.upper()}={example}"
        name = f"{name.upper()}{''.join(f'[{part!r}]' for part in inner)}"
        says_enough = not name or ", found " in message or _holds_secret(str(detail["loc"][0]))
        found = "" if says_enough else f", found {detail.get('input')!r}"
        lines.append(f"{name}: {message}{found}" if name else message)
    return "\n".join(lines)


def _name_kind(value: object) -> str:
    """Return the type of a JSON value, for error messages. The value itself may be or contain a
    secret.
    """
    return next((kind for types, kind in _KINDS if isinstance(value, types)), "null")


def _find_example(name: str) -> str:
    """Return the example in the description of a setting, or "" if there is none."""
    field = Settings.model_fields.get(name.lower())
    parts = "" if field is None or field.description is None else field.description
    return next((part for part in parts.split("`")[1::2] if part.startswith(("{", "["))), "")


def _holds_secret(name: str) -> bool:
    """Return whether a setting contains a secret, which must not appear in error messages."""
    field = Settings.model_fields.get(name)
    if field is None or field.annotation is None:
        return False
    # JSON schemas mark secrets like this, also inside objects.
    return "writeOnly" in str(TypeAdapter(field.annotation).json_schema())


def _choose(value: T | None, default: T) -> T:
    """Return the value of an additional assistant, or the default if it is None."""
    return default if value is None else value
