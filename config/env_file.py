"""Finds the settings file, checks which settings it may contain, and reports unknown names.

`REFDESK_ENV_FILE` contains the name of the file; if it is empty, no file is read. If it is unset, a
`.env` file in the working directory is read, unless another user can write to it. Since such a file
may come from an archive of documents, it may contain only the settings in `HARMLESS`. For other
settings, `REFDESK_ENV_FILE` is required.
"""

import difflib
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr
from pydantic_settings import BaseSettings, DotEnvSettingsSource

from config.errors import SettingsError

VARIABLE = "REFDESK_ENV_FILE"
OPTION = "--env-file"
SUGGESTED = ".env"
HARMLESS = frozenset(
    {
        "DOMAIN_NAME", "DOMAIN_SCOPE", "DOMAIN_TONE", "DOMAIN_FORMATTING",
        "GLOSSARY", "PRODUCT_NAMES", "GUARDRAILS_STRICTNESS", "DEFAULT_LANGUAGE",
        "SEARCH_RESULTS_LIMIT", "SEARCH_CONFIDENCE_THRESHOLD", "MAX_CONTEXT_LENGTH",
        "HISTORY_TURNS", "MAX_CLARIFICATION_ROUNDS", "QUALITY_SCORE_THRESHOLD", "MAX_RESEARCH",
        "MAX_REGENERATE", "MAX_PROCESS_COUNT", "DEADLINE_SECONDS", "JOB_DEADLINE_SECONDS",
        "AGENT_TIMEOUT_SECONDS", "MAX_ITERATIONS",
        "MAX_PARALLEL_TOOLS", "MAX_TOOL_CALLS", "TOOL_TIMEOUT_SECONDS",
    }
)  # fmt: skip
"""The settings that an unnamed file may contain: names, language, and limits of answers, but no
path, URL, key, model, price, or permission.
"""
FOREIGN_PREFIXES = ("COMPOSE_", "REFDESK_IMAGE", "REDIS_IMAGE", "REDIS_PASSWORD", "QDRANT_IMAGE")
"""The variables that deploy/compose.yaml reads from the same file."""
SIMILARITY = 0.85
SHORTEST = 6
"""Shorter variable names are not compared with settings, to avoid chance matches."""


@dataclass(frozen=True, slots=True)
class EnvFile:
    """A settings file; `is_named` is true if it was specified with `REFDESK_ENV_FILE`."""

    path: Path
    is_named: bool


def find_env_file(environment: Mapping[str, str] = os.environ) -> EnvFile | None:
    """Return the settings file, or None; raises `SettingsError` if it is missing or unsafe."""
    named = environment.get(VARIABLE)
    if named is not None:
        return _read_named_file(Path(named)) if named else None
    path = Path.cwd() / SUGGESTED
    if not path.is_file():
        return None
    status = path.stat()
    if status.st_uid not in (os.getuid(), 0) or status.st_mode & stat.S_IWOTH:
        raise SettingsError(
            f"{path} was not read, because other users own it or can write to it; set "
            f"{VARIABLE}={path} to read it nevertheless, or {VARIABLE}= to read no file"
        )
    return EnvFile(path, is_named=False)


def check_unnamed_file(settings: type[BaseSettings], file: EnvFile) -> None:
    """Raise `SettingsError` if an unnamed file contains settings that are not in `HARMLESS`."""
    if file.is_named:
        return
    held = read_names(settings, file)
    known = {name.upper() for name in settings.model_fields}
    refused = sorted(name for name in held if name in known - HARMLESS)
    # A value that refers to a variable could leak a secret of the environment into answers.
    if "${" in file.path.read_text("utf-8"):
        refused.append("a value that contains ${...}")
    if refused:
        raise SettingsError(
            f"{file.path} sets {', '.join(refused)}. A settings file that is read automatically "
            "can only set names, and the language and limits of answers. If you trust the "
            f"file, specify it: add {OPTION} {file.path} to the command, or set "
            f"{VARIABLE}={file.path}. To read no file, set {VARIABLE}= . docs/settings.md lists "
            "the settings that such a file can contain."
        )


def read_names(settings: type[BaseSettings], file: EnvFile) -> dict[str, str | None]:
    """Return the values in a settings file, by upper-case name."""
    source = DotEnvSettingsSource(settings, env_file=file.path, env_file_encoding="utf-8")
    return {name.upper(): value for name, value in source.env_vars.items()}


def describe_env_file(
    settings: type[BaseSettings], file: EnvFile | None, environment: Mapping[str, str]
) -> list[str]:
    """Return messages for the user about the file that is read, readable secrets, and unknown
    names.
    """
    known = {name.upper() for name in settings.model_fields} | {VARIABLE}
    lines = []
    if file is not None:
        held = read_names(settings, file)
        lines.append(f"settings are read from {file.path}")
        secrets = sorted(name for name in held if _is_secret(settings, name, held[name]))
        if secrets and file.path.stat().st_mode & stat.S_IROTH:
            lines.append(
                f"warning: every user of this machine can read {', '.join(secrets)} in "
                f"{file.path}; run: chmod 600 {file.path}"
            )
        odd = [name for name in held if name not in known and not _is_foreign(name)]
        lines += _describe_unknown(odd, known, f"in {file.path}")
    misspelt = [
        name for name, value in environment.items()
        if name not in known and not _is_foreign(name) and _resembles(name, value, known)
    ]  # fmt: skip
    return [*lines, *_describe_unknown(misspelt, known, "in the environment")]


def _read_named_file(path: Path) -> EnvFile:
    if not path.is_file():
        raise SettingsError(f"{VARIABLE}: the file {path} does not exist")
    return EnvFile(path.absolute(), is_named=True)


def _describe_unknown(names: Iterable[str], known: Iterable[str], place: str) -> list[str]:
    shown = []
    for name in sorted(names):
        near = _nearest(name, known)
        shown.append(name if near is None else f"{name} (did you mean {near}?)")
    return [f"warning: unknown settings {place}: {', '.join(shown)}"] if shown else []


def _nearest(name: str, known: Iterable[str], similarity: float = 0.6) -> str | None:
    near: Sequence[str] = difflib.get_close_matches(name, known, n=1, cutoff=similarity)
    return near[0] if near else None


def _resembles(name: str, value: str, known: Iterable[str]) -> bool:
    """Return whether an environment variable is probably a misspelled setting."""
    if not name.isupper() or len(name) < SHORTEST or _is_of_kubernetes(name, value):
        return False
    return name.startswith("REFDESK_") or _nearest(name, known, SIMILARITY) is not None


def _is_of_kubernetes(name: str, value: str) -> bool:
    """Return whether Kubernetes sets this variable in pods to describe a Service."""
    return "_SERVICE_" in name or value.startswith("tcp://") or "_PORT_" in name


def _is_foreign(name: str) -> bool:
    return name.startswith(FOREIGN_PREFIXES)


def _is_secret(settings: type[BaseSettings], name: str, value: str | None) -> bool:
    field = settings.model_fields.get(name.lower())
    if field is None or not value:
        return False
    kinds = getattr(field.annotation, "__args__", (field.annotation,))
    return SecretStr in kinds or ("://" in value and "@" in value)
