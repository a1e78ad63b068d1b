"""Settings for the ways of answering, their limits, external tools, and specialist profiles."""

import tomllib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from pydantic import BaseModel, Field, ValidationError

from config.errors import SettingsError
from envelope.specialists import SpecialistName, SpecialistProfile
from envelope.swarm import StrategyChoice
from envelope.tool_loop import WayName

MOST_WORKERS = 32
FOLDER = Path(__file__).with_name("specialists")
PROMPTS = Path(__file__).with_name("prompts")


class WaySettings(BaseModel):
    """Settings for the way of answering and the tool loop."""

    way: WayName = Field(
        WayName.SEARCH,
        description="how questions are answered: `search`: one search; `tools`: a loop of tool "
        "calls, for questions that need several passages; `specialists`: reviews of "
        "documents against laws and rules; `swarm`: several workers in parallel, for "
        "questions that are too large for one search; `auto`: depends on the complexity "
        "and type of each question",
    )
    search_below_complexity: int = Field(
        30,
        ge=0,
        le=101,
        description="with `WAY=auto`: questions with a lower complexity (0 to 100) are answered "
        "by one search, the others by tools, specialists or a swarm",
    )
    specialists_above_complexity: int = Field(
        70,
        ge=0,
        le=100,
        description="with `WAY=auto`: questions with a higher complexity about compliance, risks "
        "or a report are answered by specialists",
    )
    max_iterations: int = Field(
        3,
        ge=1,
        le=10,
        description="maximum number of answers that the tool loop writes; before each, a model "
        "plans calls in up to 10 rounds",
    )
    multi_tool_enabled: bool = Field(
        True, description="allow several tool calls in one round; false: one tool per round"
    )
    max_parallel_tools: int = Field(
        3, ge=1, le=64, description="maximum number of concurrent tool calls of a question"
    )
    max_tool_calls: int = Field(
        8, ge=1, le=64, description="maximum number of tool calls in one round"
    )
    tool_timeout_seconds: float = Field(
        30.0, gt=0, description="time limit of one tool call, unless the tool has a lower one"
    )
    tool_set: Path | None = Field(
        None,
        description="TOML file with additional tools (built-in tools under other names and with "
        "fixed arguments) and tool combinations",
    )

    outside_tools: Path | None = Field(
        None,
        description="TOML file with MCP servers and HTTP APIs whose tools can be called "
        "([tools.md](tools.md)); MCP servers require the extra `mcp`",
    )


class SwarmSettings(BaseModel):
    """Settings for the way `swarm`."""

    swarm_strategy: StrategyChoice = Field(
        "auto",
        description="how the swarm divides a question. `intelligent`: by the form of the question; "
        "`parallel`: independent sub-questions; `council`: several perspectives; "
        "`auto`: the planner chooses",
    )
    swarm_workers: int = Field(
        MOST_WORKERS, ge=1, le=MOST_WORKERS, description="maximum number of workers of a question"
    )
    swarm_retries: int = Field(
        3, ge=0, le=10, description="maximum number of restarts of a failed worker"
    )
    swarm_enough_share: float = Field(
        1.0,
        gt=0,
        le=1,
        description="share of the workers that must finish before the answer is written; 1: all "
        "must have finished, failed or timed out",
    )
    swarm_above_complexity: int = Field(
        70,
        ge=0,
        le=101,
        description="with `WAY=auto`: questions with a higher complexity (0 to 100) are divided "
        "among workers",
    )


class SpecialistSettings(BaseModel):
    """Settings for the specialists."""

    specialists_folder: Path | None = Field(
        None,
        description="folder with files such as `compliance.toml` that override the defaults: "
        "prompt, model, temperature, tools and limits of a specialist",
    )

    @property
    def specialists(self) -> Mapping[str, SpecialistProfile]:
        """The profile of each specialist, by name; raises `SettingsError`."""
        return load_profiles(self.specialists_folder)


@lru_cache(8)
def load_profiles(folder: Path | None = None) -> Mapping[str, SpecialistProfile]:
    """Return the built-in profiles, overridden by those in a folder.

    Raises `SettingsError` for an invalid profile, or a file that is not named after its specialist.
    """
    files = {name: FOLDER / f"{name}.toml" for name in SpecialistName}
    if folder is not None:
        if not folder.is_dir():
            raise SettingsError(f"the folder of SPECIALISTS_FOLDER does not exist: {folder}")
        for file in sorted(folder.glob("*.toml")):
            files[_read_name(file)] = file
    return MappingProxyType({name.value: _load(name, file) for name, file in files.items()})


def find_own_prompts(folder: Path | None) -> dict[str, Path]:
    """Return the prompt files of the profiles in a folder, by specialist.

    Profiles are read each time, so that prompts can be changed while the process is running. Raises
    `SettingsError` for a missing prompt.
    """
    prompts: dict[str, Path] = {}
    for file in sorted(folder.glob("*.toml")) if folder is not None else ():
        profile = _load(_read_name(file), file)
        if not profile.prompt:
            continue
        own, shared = file.with_name(profile.prompt), PROMPTS / profile.prompt
        if not own.is_file() and not shared.is_file():
            raise SettingsError(
                f"{file}: the prompt {profile.prompt!r} exists neither in the same folder nor "
                "in Refdesk"
            )
        prompts[profile.name.value] = own if own.is_file() else shared
    return prompts


def _read_name(file: Path) -> SpecialistName:
    """Return the specialist after which a file is named; raises `SettingsError`."""
    if file.stem not in set(SpecialistName):
        names = ", ".join(SpecialistName)
        raise SettingsError(f"expected one of {names} as {file}, found {file.stem!r}")
    return SpecialistName(file.stem)


def _load(name: SpecialistName, file: Path) -> SpecialistProfile:
    try:
        profile = SpecialistProfile.model_validate(tomllib.loads(file.read_text("utf-8")))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise SettingsError(f"{file}: expected {where!r}: {first['msg']}") from None
    except (OSError, ValueError) as error:
        raise SettingsError(f"{file} cannot be read: {error}") from None
    if profile.name != name:
        raise SettingsError(
            f"{file}: the name must be {name!r}, as in the file name, found {profile.name!r}"
        )
    return profile
