"""States which model writes the answers, or that no model is used."""

import sys
from pathlib import Path

from config.settings import Settings
from deploy.assembly.model_choice import list_answering_models, vendor_access
from knowledge.data_folder import protect_data_folder

NO_MODEL = (
    "no model is in use, so answers consist of passages that the search finds; to use a "
    "model, set GEN_MODEL (docs/local-models.md)"
)
_SAID = "model_in_use"
"""The file in the data folder that contains the line that was last written."""


def describe_models(settings: Settings) -> str:
    """Return a line about the configured models, without calling them."""
    if not settings.uses_model:
        return NO_MODEL
    names = [
        str(name) for name in list_answering_models(vendor_access(settings), settings.model_of)
    ]
    return f"answers are written by {', '.join(dict.fromkeys(names))}; see: refdesk models"


def say_models_once(line: str, data_folder: Path) -> None:
    """Write a line about the models to standard error, once per data folder."""
    file = data_folder / _SAID
    if file.is_file() and file.read_text(encoding="utf-8") == line:
        return
    sys.stderr.write(f"refdesk: {line}\n")
    protect_data_folder(data_folder)
    file.write_text(line, encoding="utf-8")
