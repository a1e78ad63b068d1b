"""Writes a backup of this installation to a file while it runs, or restores one."""

import argparse
import asyncio
from dataclasses import asdict
from pathlib import Path

from cli.backup_file import read_backup, write_backup
from cli.printing import print_line, say_json
from config.settings import load_settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refdesk backup`."""
    parser.add_argument("file", type=Path, help="file to create")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.epilog = (
        "The file contains questions, answers, keys and documents: store it encrypted. Redis "
        "accepts no writes while it is copied; questions wait until the copy is complete."
    )


def run(chosen: argparse.Namespace) -> int:
    """Run `refdesk backup`."""
    result = asyncio.run(write_backup(load_settings(), chosen.file))
    if chosen.json:
        say_json(asdict(result))
        return 0
    print_line(
        f"wrote {chosen.file}: {result.keys} keys of Redis, {result.files} files, "
        f"{result.records} records"
    )
    for note in result.notes:
        print_line(f"note: {note}")
    return 0


def add_restore_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refdesk restore`."""
    parser.add_argument("file", type=Path, help="backup file")
    parser.add_argument(
        "--overwrite", action="store_true", help="replace the existing data of this "
                                                 "installation in "
                                                 "Redis and "
                                                 "in the "
                                                 "index"
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.epilog = (
        "Stop all processes of the installation first. Questions that were open continue; those "
        "whose deadline has passed end as failed. Data that was erased after the backup is "
        "restored too: repeat `refdesk forget`."
    )


def run_restore(chosen: argparse.Namespace) -> int:
    """Run `refdesk restore`."""
    result = asyncio.run(read_backup(load_settings(), chosen.file, overwrite=chosen.overwrite))
    if chosen.json:
        say_json(asdict(result))
        return 0
    print_line(
        f"restored {chosen.file}: {result.keys} keys of Redis, {result.files} files, "
        f"{result.records} records"
    )
    return 0
