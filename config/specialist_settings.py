"""Settings of the specialists: a file for each of them."""

import tomllib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from pydantic import BaseModel, Field, ValidationError, field_validator

from config.errors import SettingsError
from envelope.ways.specialists import SpecialistName, SpecialistProfile

FOLDER = Path(__file__).with_name("specialists")
PROMPTS = Path(__file__).with_name("prompts")


class SpecialistSettings(BaseModel):
    """The specialists; a part of `Settings`."""

    specialists_folder: Path | None = Field(
        None,
        description="folder with files such as `compliance.toml` that replace those of the "
        "product: prompt, model, temperature, tools and limits of a specialist",
    )

    @field_validator("specialists_folder", mode="before")
    @classmethod
    def _treat_empty_folder_as_unset(cls, value: object) -> object:
        return None if value == "" else value

    @property
    def specialists(self) -> Mapping[str, SpecialistProfile]:
        """The profile of each specialist by its name; raises `SettingsError`."""
        return load_profiles(self.specialists_folder)


@lru_cache(8)
def load_profiles(folder: Path | None = None) -> Mapping[str, SpecialistProfile]:
    """Return the profiles of the product, replaced by those of a folder.

    Raises `SettingsError` for a file that is no profile, or of another name than its specialist.
    """
    files = {name: FOLDER / f"{name}.toml" for name in SpecialistName}
    if folder is not None:
        if not folder.is_dir():
            raise SettingsError(f"expected a folder SPECIALISTS_FOLDER, found none at {folder}")
        for file in sorted(folder.glob("*.toml")):
            files[_read_name(file)] = file
    return MappingProxyType({name.value: _load(name, file) for name, file in files.items()})


def find_own_prompts(folder: Path | None) -> dict[str, Path]:
    """Return the prompts that the profiles of a folder name, by specialist.

    Profiles are read each time, so that prompts can be changed while they are used. Raises
    `SettingsError` for a prompt that neither the folder nor the product has.
    """
    found: dict[str, Path] = {}
    for file in sorted(folder.glob("*.toml")) if folder is not None else ():
        profile = _load(_read_name(file), file)
        if not profile.prompt:
            continue
        own, shared = file.with_name(profile.prompt), PROMPTS / profile.prompt
        if not own.is_file() and not shared.is_file():
            raise SettingsError(
                f"{file}: expected the prompt {profile.prompt!r} beside it or in the product, "
                "found none"
            )
        found[profile.name.value] = own if own.is_file() else shared
    return found


def _read_name(file: Path) -> SpecialistName:
    """Return the specialist that a file is named after; raises `SettingsError`."""
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
        raise SettingsError(f"{file}: expected the name {name!r}, found {profile.name!r}")
    return profile
