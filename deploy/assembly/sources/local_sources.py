"""Opens the sources on this machine: paths, archives, and repositories."""

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from config.settings import Settings
from deploy.assembly.data_folder import protect_data_folder
from deploy.assembly.sources.source_spec import SourceSpec
from knowledge.connectors.git_repository import copy_revision, find_places
from knowledge.connectors.repository_survey import survey_copy
from knowledge.documents.survey import LanguageOf, ReadTitle, Survey
from knowledge.index.listing import ListedDocument
from knowledge.index.overlap import SurveySource, survey_part


def open_local(settings: Settings, spec: SourceSpec, stack: ExitStack) -> Path | SurveySource:
    """Return the source of a path or a repository; `stack` removes its copy at the end."""
    if spec.is_repository:
        protect_data_folder(settings.refdesk_data)
        # Not in memory, because pages may refer to any file of the repository.
        folder = stack.enter_context(
            tempfile.TemporaryDirectory(dir=settings.refdesk_data, prefix="git-")
        )
        return partial(_survey_repository, spec, Path(folder))
    if not spec.web_address:
        return Path(spec.place)
    return partial(_survey_path, spec)


def _survey_repository(
    spec: SourceSpec,
    target: Path,
    listed: Sequence[ListedDocument],
    read_title: ReadTitle,
    language_of: LanguageOf,
) -> Survey:
    tree = target / (spec.repository.name.removesuffix(".git") or "repository")
    tree.mkdir()
    copied = copy_revision(spec.repository, spec.revision, spec.folder, tree)
    return survey_copy(
        spec.root,
        tree,
        spec.folder,
        copied,
        read_title,
        language_of,
        web_address=spec.web_address,
        places=find_places(spec.repository),
    )


def _survey_path(
    spec: SourceSpec,
    listed: Sequence[ListedDocument],
    read_title: ReadTitle,
    language_of: LanguageOf,
) -> Survey:
    return survey_part(Path(spec.place), listed, read_title, language_of, spec.web_address)
