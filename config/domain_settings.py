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
    """An additional assistant; an empty tenant stands for `TENANT`."""

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
        description="topics that the assistant answers questions about",
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
        description="terms of the domain and their use, which are part of prompts (a JSON list), "
        "such as `route: a way to a carrier; never say channel`",
    )
    prompts_folder: Path | None = Field(
        None,
        description="folder of prompts that replace those of the product, `respond.txt` and so on; "
        "see `config/prompts/README.md`",
    )
    guardrails_strictness: Literal["low", "medium", "high"] = Field(
        "medium",
        description="how certain a model must be that a question is within the scope; without a "
        "model it has no effect",
    )
    product_names: tuple[str, ...] = Field(
        (), description="names that are never translated or corrected in a question (a JSON list)"
    )
    default_language: str = Field(
        "en",
        pattern=r"^[a-z]{2,3}$",
        description="language of answers when none can be detected in the question (ISO 639-1, "
        "such as `de`)",
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
        description="further assistants that these processes serve, each with its own documents: "
        "a JSON list of objects with `assistant`, `domain_name`, `domain_scope`, and "
        "optionally `tenant`, `domain_tone`, `domain_formatting`, `glossary`, "
        "`prompts_folder`, `documentation_url`, `way` and `tool_set`",
    )
    documentation_url: str | None = Field(
        None,
        description="where the documents are published. Links to sources without a URL lead below "
        "this address, or to the address of a template, such as "
        "`https://docs.acme.com/{page}#{anchor}` (`{path}`: the path of the file, `{page}`: "
        "the same without its suffix); unset: they lead to the document reader",
    )

    link_hosts: tuple[Annotated[str, Field(pattern=HOST_AND_PORT)], ...] = Field(
        (),
        description="hosts that you trust, such as `status.acme.com` or `shop.acme.com:8443` (a "
        "JSON list): an address on one of them is shown as a link if a cited source contains "
        "exactly this address; see [links](links.md)",
    )

    @property
    def assistant_key(self) -> tuple[str, str]:
        """The tenant and the name of the assistant, which together identify it."""
        return self.tenant, self.assistant

    @property
    def topic(self) -> str:
        """The topic of questions, which is the scope without its full stop or, if there is none,
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
