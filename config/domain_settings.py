"""Settings for the domain: topic, assistants, and their documents."""

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field, field_validator

from config.storage_settings import WEB_ADDRESS
from envelope.tool_loop import WayName

HOST_AND_PORT = r"^[a-z0-9-]{1,63}(\.[a-z0-9-]{1,63}){1,10}(:\d{1,5})?$"
NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"


class AssistantSettings(BaseModel, frozen=True, extra="forbid"):
    """An additional assistant; an empty `tenant` stands for `TENANT`."""

    assistant: str = Field(pattern=NAME)
    tenant: str = Field("", pattern=f"^$|{NAME}")
    domain_name: str
    domain_scope: str
    glossary: tuple[str, ...] = Field((), max_length=100)
    prompts_folder: Path | None = None
    documentation_url: str | None = None
    way: WayName | None = None
    tool_set: Path | None = None
    domain_tone: str | None = Field(None, max_length=500)
    domain_formatting: str | None = Field(None, max_length=500)

    @field_validator("documentation_url")
    @classmethod
    def _is_documentation(cls, value: str | None) -> str | None:
        return _documentation(value)


class DomainSettings(BaseModel):
    """Settings for the domain: topic, assistants, and their documents."""

    domain_name: str = Field(
        "Documentation Assistant", description="name of the assistant in its answers"
    )
    domain_scope: str = Field(
        "product documentation and user guides",
        description="topics about which the assistant answers questions",
    )
    domain_tone: str = Field(
        "",
        max_length=500,
        description="tone of answers that a model writes, such as `friendly, first names`",
    )
    domain_formatting: str = Field(
        "",
        max_length=500,
        description="format of answers that a model writes, such as `no tables`",
    )
    glossary: tuple[str, ...] = Field(
        (),
        max_length=100,
        description="domain terms and how to use them, for prompts (a JSON list), such as `route: "
        "a way to a carrier; never say channel`",
    )
    prompts_folder: Path | None = Field(
        None,
        description="folder of prompts that override the default prompts, such as `respond.txt`; "
        "see `config/prompts/README.md`",
    )
    guardrails_strictness: Literal["low", "medium", "high"] = Field(
        "medium",
        description="how certain a model must be that a question is within the scope; without a "
        "model it has no effect",
    )
    product_names: tuple[str, ...] = Field(
        (), description="names that are never translated or corrected in questions (a JSON list)"
    )
    default_language: str = Field(
        "en",
        pattern=r"^[a-z]{2,3}$",
        description="language of answers if the language of a question cannot be detected (ISO "
        "639-1, such as `de`)",
    )
    tenant: str = Field(
        "default",
        pattern=NAME,
        description="name of the organisation that owns the documents and conversations",
    )
    assistant: str = Field(
        "default", pattern=NAME, description="name of the tenant's main assistant"
    )
    assistants: tuple[AssistantSettings, ...] = Field(
        (),
        description="additional assistants that these processes serve, each with its own "
        "documents: a JSON list of objects with `assistant`, `domain_name`, `domain_scope`, and "
        "optionally `tenant`, `domain_tone`, `domain_formatting`, `glossary`, "
        "`prompts_folder`, `documentation_url`, `way` and `tool_set`",
    )
    documentation_url: str | None = Field(
        None,
        description="URL at which the documents are published. Links to sources without their own "
        "URL begin with it, or are built from it if it is a template, such as "
        "`https://docs.acme.com/{page}#{anchor}` (`{path}`: the path of the file, "
        "`{page}`: the path without its extension); unset: links lead to the document "
        "reader",
    )

    link_hosts: tuple[Annotated[str, Field(pattern=HOST_AND_PORT)], ...] = Field(
        (),
        description="trusted hosts, such as `status.acme.com` or `shop.acme.com:8443` (a JSON "
        "list): a URL on one of them is shown as a link if a cited source contains "
        "exactly this URL; see [links](links.md)",
    )

    @property
    def assistant_key(self) -> tuple[str, str]:
        """The tenant and the name of the assistant, which together identify it."""
        return self.tenant, self.assistant

    @property
    def topic(self) -> str:
        """The topic of questions: the scope without its final full stop or, if there is no scope,
        the name.
        """
        return self.domain_scope.strip().rstrip(".") or self.domain_name

    @field_validator("documentation_url")
    @classmethod
    def _is_documentation(cls, value: str | None) -> str | None:
        return _documentation(value)


def _documentation(value: str | None) -> str | None:
    names = set(re.findall(r"\{[^{}]*\}?", value or ""))
    if value is not None and (
        WEB_ADDRESS.fullmatch(value) is None or names - {"{path}", "{page}", "{anchor}"}
    ):
        raise ValueError(
            "expected an address such as https://docs.acme.com, which may contain {path}, {page} "
            "and {anchor}"
        )
    return value
