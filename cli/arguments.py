"""Arguments that several commands have in common, and the format of help texts."""

import argparse
from collections.abc import Sequence

from deploy.errors import CommandError


def add_groups_argument(
    parser: argparse.ArgumentParser,
    purpose: str = "ask as a user in these groups (default: only public documents are read)",
) -> None:
    """Add the argument for groups; `purpose` is its help text."""
    parser.add_argument(
        "--groups",
        nargs="+",
        action="extend",
        default=[],
        metavar="GROUP",
        help=f"{purpose}; separated by spaces or commas; repeatable",
    )


def add_format_argument(parser: argparse.ArgumentParser) -> None:
    """Add the argument for the output format of replies."""
    parser.add_argument(
        "--format",
        choices=("text", "markdown"),
        default="text",
        help="format of printed replies: text in 80 columns, or Markdown (default: text)",
    )


def read_groups(given: Sequence[str]) -> tuple[str, ...]:
    """Return the given groups; raises `CommandError` for an invalid name."""
    # Imported here: `refdesk --help` does not need pydantic.
    from envelope.question import parse_groups

    try:
        return parse_groups(part for text in given for part in text.split(",") if part)
    except ValueError as error:
        raise CommandError(str(error)) from error


def format_sentence(purpose: str) -> str:
    """Return a purpose, such as `list all keys`, formatted as a sentence."""
    return f"{purpose[:1].upper()}{purpose[1:]}."


def add_action(
    actions: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, purpose: str
) -> argparse.ArgumentParser:
    """Add an action of a command, and return its parser."""
    return actions.add_parser(name, help=purpose, description=format_sentence(purpose))
