"""Names the suites of `refdesk evaluate`."""

from importlib import import_module
from inspect import isawaitable
from pathlib import Path

SUITES = {
    "compliance": "deploy.evaluation.compliance.checklist_suite",
    "retrieval": "deploy.evaluation.retrieval",
    "context": "deploy.evaluation.context_suite",
    "language": "deploy.evaluation.language",
    "scope": "deploy.evaluation.scope",
    "conversation": "deploy.evaluation.conversation_suite",
}


async def evaluate(suite: str, data: Path) -> object:
    """Return the figures of a suite; raises `UnknownFormatError` for data of another kind."""
    figures = import_module(SUITES[suite]).evaluate(data)
    return await figures if isawaitable(figures) else figures
