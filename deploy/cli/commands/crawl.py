"""Crawls a website, and reads its pages into the index."""

import argparse

from deploy.assembly.source_registry import parse_source
from deploy.cli.commands.ingest import add_result_arguments, ingest_and_report
from deploy.errors import CommandError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refdesk crawl`."""
    parser.add_argument(
        "url",
        metavar="URL",
        help="where to start, such as https://docs.example.com/guide/; only pages of this host at "
        "or below this path are opened",
    )
    parser.add_argument(
        "--pages", type=_count, metavar="N", help="open at most N pages (default: CRAWL_PAGES)"
    )
    parser.add_argument(
        "--depth",
        type=_count,
        metavar="N",
        help="follow at most N links from the start to a page (default: CRAWL_DEPTH)",
    )
    parser.add_argument(
        "--seconds",
        type=_count,
        metavar="N",
        help="stop after N seconds (default: CRAWL_SECONDS)",
    )
    add_result_arguments(parser)


def run(chosen: argparse.Namespace) -> int:
    """Run `refdesk crawl`."""
    spec = parse_source(chosen.url, pages=chosen.pages, depth=chosen.depth, seconds=chosen.seconds)
    if not spec.is_website:
        raise CommandError(
            f"expected a web address such as https://docs.example.com/, found {chosen.url!r}"
        )
    return ingest_and_report([spec], as_json=chosen.json)


def _count(text: str) -> int:
    """Return a number of at least 1."""
    if not text.isascii() or not text.isdigit() or not int(text[:9]) > 0:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, found {text!r}")
    return int(text[:9])
