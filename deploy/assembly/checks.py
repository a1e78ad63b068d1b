"""Checks a change to the documents by comparing the search results of questions before and after
it.

The questions are searched for in a copy of the index. Then the proposed documents are ingested into
the copy, and the questions are searched for again. Unchanged documents keep their chunks and
vectors. The index in use is not changed.
"""

import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from config.settings import Settings
from deploy.assembly.check_questions import collect_questions, searching_as_for_answers
from deploy.assembly.data_folder import open_source_registry
from deploy.assembly.ingestion import ingest_here
from deploy.assembly.ingestion_run import request_documents
from deploy.assembly.knowledge import Knowledge, open_knowledge
from deploy.assembly.source_opening import fetch_sources
from deploy.errors import CommandError
from knowledge.checks import CheckQuestion, CheckResult, Snapshot, compare, take_snapshot
from knowledge.connectors.git_repository import copy_revision, find_places, survey_copy
from knowledge.data_folder import protect_data_folder
from knowledge.documents.exports import make_address
from knowledge.documents.folder import RuleBase
from knowledge.documents.survey import LanguageOf, ReadTitle, Survey, survey
from knowledge.errors import IndexOwned
from knowledge.index.embedded import copy_closed
from knowledge.index.index_folders import IndexFolders
from knowledge.index.listing import ListedDocument, is_below
from knowledge.index.overlap import SurveySource
from knowledge.ingestion_report import Report
from knowledge.owner_requests import OwnerRequest
from knowledge.search.question_vectors import RememberingEmbedder
from knowledge.search.searcher import LevelSearcher
from knowledge.source_registry import GIT, FetchedSource, SourceSpec, locate_copy, parse_source

PREFIX = "check-"
"""The prefix of the folder name of a copy in the data folder."""
EARLIER = "earlier"
"""The folder with the state before the change, inside the folder of the copy."""
AskBoth = Callable[[CheckResult, Knowledge, Knowledge], Awaitable[Sequence["AnswerChange"]]]
"""Answers the affected questions from the documents before and after the change."""
_NO_QUESTIONS = (
    "there are no questions to check, because this installation has no recorded, "
    "marked or verified questions; specify a file with --questions"
)


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposed state of a source: its current files, or a revision of the repository that
    contains it.

    `stands_for` is the name, in the index, of the source that it replaces; it is empty if the
    source keeps its own name.
    """

    spec: SourceSpec
    revision: str = ""
    stands_for: str = ""

    @property
    def root(self) -> str:
        """The name of the source in the index."""
        return self.stands_for or self.spec.root


@dataclass(frozen=True, slots=True)
class AnswerChange:
    """The answers to a question before and after a change to the documents.

    `lost` contains the sentences of the earlier answer that the later answer does not support, each
    with the judge's reason. `error` is the reason why the answers were not judged.
    """

    question: CheckQuestion
    before: str
    after: str
    lost: tuple[tuple[str, str], ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class CheckRun:
    """The result of a check; `notes` states what could not be checked.

    `is_complete` is false if a whole source could not be read.
    """

    result: CheckResult
    seconds: float
    notes: tuple[str, ...] = ()
    answers: tuple[AnswerChange, ...] = ()
    is_complete: bool = True


def find_proposals(
    settings: Settings, named: Sequence[str], *, revision: str, stands_for: str
) -> list[Proposal]:
    """Return the proposed states of the named sources, or of all configured ones if none are named.

    Raises `CommandError` and `SourceError`.
    """
    known = {
        source_spec.root: source_spec
        for source_spec in open_source_registry(settings.data_place).list_specs()
    }
    if not named and not known:
        raise CommandError(
            "there are no configured sources to check; specify a source, such as a folder"
        )
    if stands_for and len(named) != 1:
        raise CommandError("--as requires exactly one source, which replaces the indexed source")
    specs = [_find_spec(known, text) for text in named or known]
    if stands_for and not all(
        spec.is_local and not spec.is_repository for spec in (*specs, _find_spec(known, stands_for))
    ):
        raise CommandError("--as compares folders, not websites, stores or git: repositories")
    root = _find_root(known, stands_for) if stands_for else ""
    return [Proposal(spec, revision, root) for spec in specs]


async def run_check(
    settings: Settings,
    questions: Sequence[CheckQuestion],
    proposals: Sequence[Proposal],
    report: Report,
    *,
    base: str | None = None,
    groups: tuple[str, ...] = (),
    with_records: bool = False,
    ask: AskBoth | None = None,
) -> CheckRun:
    """Return how the proposed documents change the results of the questions.

    The documents are compared with the index in use or, if `base` is given, with that revision.
    `with_records` adds the recorded, marked, and verified questions of the assistant. Raises
    `CommandError`, and the errors of sources and of the index.
    """
    if base is not None and any(proposal.stands_for for proposal in proposals):
        raise CommandError("--as compares with the index in use and cannot be used with --base")
    began, failed = time.monotonic(), dict[str, str]()
    async with _open_copy(settings, is_empty=base is not None) as (own, knowledge):
        if base is not None:
            earlier = [replace(proposal, revision=base) for proposal in proposals]
            failed = await _ingest(own, knowledge, earlier, report)
        make_request = searching_as_for_answers(own, groups)
        if with_records:
            questions = [*questions, *await collect_questions(settings, knowledge)]
        if not questions:
            raise CommandError(_NO_QUESTIONS)
        before = await take_snapshot(knowledge, questions, make_request)
        notes = _find_strangers(proposals, before) if base is None else []
        if ask is not None:
            await _keep_earlier(own, knowledge)
        await asyncio.to_thread(_copy_mirrors, settings, own, proposals)
        failed |= await _ingest(own, knowledge, proposals, report)
        after = await take_snapshot(knowledge, questions, make_request, since=before)
        result = compare(questions, before, after)
        answers: Sequence[AnswerChange] = ()
        if ask is not None:
            state = own.model_copy(update={"refdesk_data": own.refdesk_data / EARLIER})
            async with open_knowledge(state, alone=True) as first:
                answers = await ask(result, first, knowledge)
    notes += [f"{source} could not be read: {reason}" for source, reason in failed.items()]
    is_complete = not _find_unread(proposals, failed)
    return CheckRun(result, time.monotonic() - began, tuple(notes), tuple(answers), is_complete)


async def _keep_earlier(own: Settings, knowledge: Knowledge) -> None:
    """Make a second copy before the proposed documents change the first one."""
    target = own.refdesk_data / EARLIER / "index"
    await knowledge.index.copy_to(target)
    (copied,) = target.iterdir()
    _find_folders(own.model_copy(update={"refdesk_data": target.parent})).switch(copied.name)


@asynccontextmanager
async def _open_copy(
    settings: Settings, *, is_empty: bool
) -> AsyncIterator[tuple[Settings, Knowledge]]:
    """Provide a copy of the index in use, or an empty index, and the settings for using it."""
    place = None
    if not is_empty:
        protect_data_folder(settings.refdesk_data)
        # The process that has the index open writes the copy: both must see the folder.
        place = settings.refdesk_data.resolve()
    with tempfile.TemporaryDirectory(dir=place, prefix=PREFIX) as folder:
        own = settings.model_copy(
            update={
                "refdesk_data": Path(folder),
                "redis_url": None,
                "qdrant_url": None,
                "assistants": (),
            }
        )
        if not is_empty:
            await _copy_index(settings, own)
        async with open_knowledge(own, alone=True) as knowledge:
            # Each question is searched for twice, and embedded once.
            vectors = RememberingEmbedder(knowledge.embedder)
            searcher = LevelSearcher(
                knowledge.index,
                vectors,
                threshold=own.search_confidence_threshold,
                reranker=knowledge.reranker,
            )
            yield own, replace(knowledge, searcher=searcher)


async def _copy_index(settings: Settings, own: Settings) -> None:
    """Copy the index in use, either in this process or in the process that has opened it.

    Raises `CommandError` if there is no index, or if it is on a server.
    """
    if settings.qdrant_url is not None:
        raise CommandError(
            "the index is on a Qdrant server, which is not copied: compare two revisions with "
            "--base REVISION"
        )
    serving = _find_folders(settings).serving
    source, target = settings.refdesk_data / "index" / serving, own.refdesk_data / "index"
    if not await asyncio.to_thread(source.is_dir):
        raise CommandError(
            f"there is no index in {settings.refdesk_data.resolve()} yet: ingest the documents "
            "first, or compare two revisions with --base REVISION"
        )
    try:
        await asyncio.to_thread(copy_closed, source, target)
    except IndexOwned:
        await request_documents(settings, OwnerRequest(action="copy", new=str(target)))
    (copied,) = target.iterdir()
    _find_folders(own).switch(copied.name)


def _find_folders(settings: Settings) -> IndexFolders:
    return IndexFolders(settings.refdesk_data / "index", *settings.assistant_key)


def _copy_mirrors(settings: Settings, own: Settings, proposals: Sequence[Proposal]) -> None:
    """Copy the stored pages of websites and stores, so that only changed pages are fetched."""
    for spec in (proposal.spec for proposal in proposals if not proposal.spec.is_local):
        for kind in ("websites", "stores"):
            name = (*settings.assistant_key, kind, spec.place)
            known = locate_copy(settings.refdesk_data, *name)
            if known.is_dir():
                shutil.copytree(known, locate_copy(own.refdesk_data, *name))


async def _ingest(
    own: Settings, knowledge: Knowledge, proposals: Sequence[Proposal], report: Report
) -> dict[str, str]:
    """Ingest the documents, and return the reason for each source and file that could not be read.

    Raises `CommandError` if none of the sources could be read.
    """
    with ExitStack() as stack:
        sources = [await _open(own, proposal, report, stack) for proposal in proposals]
        result = await ingest_here(own, knowledge, sources, report, describes_by_rules=True)
    failed = dict(result.failed)
    unread = _find_unread(proposals, failed)
    if len(unread) >= len(proposals):
        raise CommandError(f"{unread[0]} cannot be read: {failed[unread[0]]}")
    return failed


async def _open(
    own: Settings, proposal: Proposal, report: Report, stack: ExitStack
) -> Path | FetchedSource | SurveySource:
    spec = proposal.spec
    if spec.is_repository:
        revision = proposal.revision or spec.revision
        return FetchedSource(spec=spec.model_copy(update={"revision": revision}))
    if not spec.is_local:
        if proposal.revision:
            raise CommandError(
                f"{spec.root} has no revisions because it is not in a Git repository"
            )
        (fetched,) = await fetch_sources(own, [spec], report)
        return fetched
    if proposal.revision:
        folder = stack.enter_context(tempfile.TemporaryDirectory(dir=own.refdesk_data))
        return partial(_survey_revision, proposal, Path(folder))
    if proposal.stands_for:
        return partial(_survey_substitute, proposal)
    return FetchedSource(spec=spec)


def _survey_revision(
    proposal: Proposal,
    target: Path,
    listed: Sequence[ListedDocument],
    read_title: ReadTitle,
    language_of: LanguageOf,
) -> Survey:
    """Return the files in a folder as they are in a revision of the repository that contains it."""
    path = Path(proposal.spec.place)
    places = find_places(path)
    top = next(
        (place for place in places if path.resolve().is_relative_to(place.resolve())), places[0]
    )
    folder = path.resolve().relative_to(top.resolve()).as_posix().removeprefix(".")
    tree = target / (top.name if folder else Path(proposal.root).name)
    tree.mkdir()
    copied = copy_revision(top, proposal.revision, folder, tree)
    surveyed = survey_copy(
        proposal.root, tree, folder, copied, read_title, language_of, places=places
    )
    return _rename(surveyed, proposal, f"{tree.name}/" if folder else "")


def _survey_substitute(
    proposal: Proposal,
    listed: Sequence[ListedDocument],
    read_title: ReadTitle,
    language_of: LanguageOf,
) -> Survey:
    """Return the files in a folder under the name of the source that the folder replaces."""
    path, root = Path(proposal.spec.place), Path(proposal.root)
    # The access rules above the source apply, and those of the proposed folder itself.
    bases = [RuleBase(path, within=path), RuleBase(root, outside=root)]
    surveyed = survey(path, read_title, language_of, bases=bases)
    return _rename(surveyed, proposal, f"{Path(surveyed.root).name}/", f"{root.name}/")


def _rename(surveyed: Survey, proposal: Proposal, begin: str, instead: str = "") -> Survey:
    """Return a survey whose files have the names and URLs of those in the source."""
    located = {}
    for path, place in surveyed.locations.items():
        is_inside = bool(begin) and place.name.startswith(begin)
        name = instead + place.name.removeprefix(begin) if is_inside else place.name
        address = make_address(proposal.spec.web_address, path) if proposal.spec.web_address else ""
        located[path] = replace(place, name=name, url=address or place.url)
    return replace(surveyed, root=proposal.root, locations=located)


def _find_spec(known: dict[str, SourceSpec], text: str) -> SourceSpec:
    """Return a configured source by name or, if there is none, the source described by the text."""
    if text in known:
        return known[text]
    spec = parse_source(text)
    if spec.is_local and not os.path.exists(spec.repository):
        raise CommandError(f"{text!r} is neither an existing folder nor a configured source")
    return known.get(_find_root(known, text) if spec.is_local else spec.root, spec)


def _find_root(known: dict[str, SourceSpec], text: str) -> str:
    """Return the name under which a path is in the index; the path may contain symbolic links."""
    if text in known or "://" in text or text.startswith(GIT):
        return text
    return os.path.realpath(text)


def _find_unread(proposals: Sequence[Proposal], failed: Iterable[str]) -> list[str]:
    """Return the failed locations that are a whole source or contain one."""
    roots = [proposal.root for proposal in proposals]
    return [place for place in failed if any(is_below(root, place) for root in roots)]


def _find_strangers(proposals: Sequence[Proposal], before: Snapshot) -> list[str]:
    """Return a note for each proposal whose source is not in the index."""
    roots = {os.path.realpath(document.root) for document in before.listed.values()}
    return [
        f"the index contains no documents of {proposal.root}, so all of its pages count as "
        "added; specify the replaced source with --as"
        for proposal in proposals
        if not any(
            is_below(root, os.path.realpath(proposal.root))
            or is_below(os.path.realpath(proposal.root), root)
            for root in roots
        )
    ]
