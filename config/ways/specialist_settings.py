"""Settings of the specialists: a file for each of them."""

import tomllib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from pydantic import BaseModel, Field, ValidationError, field_validator

from config.errors import SettingsError
from envelope.ways.specialists import SpecialistName, SpecialistProfile

FOLDER = Path(__file__).parents[1] / "specialists"


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
            if file.stem not in set(SpecialistName):
                names = ", ".join(SpecialistName)
                raise SettingsError(f"expected one of {names} as {file}, found {file.stem!r}")
            files[SpecialistName(file.stem)] = file
    return MappingProxyType({name.value: _load(name, file) for name, file in files.items()})


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
