"""The argument `--groups` of the commands that ask, and of those that create keys."""

import argparse
from collections.abc import Sequence

from deploy.errors import CommandError
from envelope.question import parse_groups


def add_groups_argument(
    parser: argparse.ArgumentParser,
    purpose: str = "ask as a person of these groups (default: only public documents are read)",
) -> None:
    """Add the argument; `purpose` is its help."""
    parser.add_argument(
        "--groups",
        nargs="+",
        action="extend",
        default=[],
        metavar="GROUP",
        help=f"{purpose}; separated by blanks or commas; repeatable",
    )


def read_groups(given: Sequence[str]) -> tuple[str, ...]:
    """Return the given groups; raises `CommandError` for an invalid name."""
    try:
        return parse_groups(part for text in given for part in text.split(",") if part)
    except ValueError as error:
        raise CommandError(str(error)) from error
