"""Settings of storage: Redis, Qdrant and the data folder."""

from pathlib import Path

from pydantic import BaseModel, Field, SecretStr, field_validator

REDIS_SCHEMES = ("redis://", "rediss://", "unix://", "redis+cluster://", "rediss+cluster://")


class StorageSettings(BaseModel):
    """The servers and the data folder; a part of `Settings`."""

    redis_url: str | None = Field(None, description="unset: the embedded broker")
    qdrant_url: str | None = Field(None, description="unset: the embedded index")
    qdrant_api_key: SecretStr | None = Field(None, description="key of the Qdrant server")
    refdesk_data: Path = Field(
        Path(".refdesk"),
        description="folder of the embedded broker, the embedded index, the records and the models",
    )

    @field_validator("redis_url", "qdrant_url", mode="before")
    @classmethod
    def _empty_server_is_unset(cls, value: object) -> object:
        return None if value == "" else value

    @field_validator("redis_url")
    @classmethod
    def _redis_scheme(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(REDIS_SCHEMES):
            raise ValueError(
                "expected redis://, rediss:// or unix:// and a server, or redis+cluster:// or "
                "rediss+cluster:// and some nodes"
            )
        return value
