"""Settings of tools that run elsewhere."""

from pathlib import Path

from pydantic import BaseModel, Field, field_validator


class OutsideSettings(BaseModel):
    """The file of MCP servers and HTTP interfaces; a part of `Settings`."""

    outside_tools: Path | None = Field(
        None,
        description="TOML file with MCP servers and HTTP interfaces whose tools may be called "
        "([tools.md](tools.md)); MCP servers need the extra `mcp`",
    )

    @field_validator("outside_tools", mode="before")
    @classmethod
    def _treat_blank_as_unset(cls, value: object) -> object:
        return None if value == "" else value
