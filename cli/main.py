"""The `refdesk` command, which parses the arguments, runs a subcommand, and prints errors on one
line.
"""

import argparse
import difflib
import errno
import gc
import importlib
import os
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext, redirect_stdout, suppress
from io import StringIO
from itertools import takewhile
from types import ModuleType
from typing import Any

from cli.arguments import format_sentence
from cli.workflow_commands import without_commands
from gateway.chat_channels import CHAT_CHANNELS
from knowledge.isolation.process_memory import hide_memory

VERBS: dict[str, str] = {
    "demo": "ingest example documents, answer three questions, show a trace and a recorded example",
    "ask": "answer one question and print the sources",
    "chat": "start a conversation in the terminal",
    "ingest": "read documents or a website into the index",
    "sources": "list, add or remove the sources of documents, or read them now",
    "documents": "list, show or remove documents in the index",
    "up": "run all roles in one worker process",
    "serve": "serve the HTTP API, the chat completions API and the widget",
    **{spec.name: spec.purpose for spec in CHAT_CHANNELS},
    "mcp": "answer an MCP client over standard input and output",
    "console": "print a link that opens the console of a running `refdesk serve`",
    "gaps": "list gaps in the documents, or set the state of a gap",
    "keys": "create, list and revoke keys of the HTTP API",
    "worker": "run a worker process for the given roles",
    "workers": "pause or drain workers, set their log level or reload their prompts",
    "models": "check the configured models: reachability, context window, speed, price",
    "replay": "run a finished question again, completely or from a step, and compare the answers",
    "trace": "show stages, decisions, model calls and cost of one message",
    "doctor": "check the installation: what works, what is slow, what is missing",
    "status": "show queue depths, dead letters and live workers",
    "forget": "erase a conversation from all stores",
    "webhooks": "list, retry or drop webhook events that could not be delivered",
    "backup": "back up Redis, the index, the data folder and the records to a file",
    "restore": "restore a backup",
    "dead": "list, show, retry or drop dead letters",
    "review": "compare a document with rules, requirement by requirement",
    "audit": "check the citations of a Markdown answer against the documents",
    "check": "show which questions are broken by a change to the documents",
    "evaluate": "measure Refdesk on a folder of evaluation data",
}
MODULES = {
    "chat": "ask",
    "console": "keys",
    "restore": "backup",
    "sources": "ingest",
    "up": "worker",
    "workers": "status",
}
"""The modules of subcommands that have a different name; see `_find_function`."""
GARBAGE_THRESHOLD = 20_000
EXIT_ERROR = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
EXIT_STATUSES = {"answered": 0, "clarification": 3, "refused": 4, "failed": 5, "superseded": 5}
EPILOG = """\
exit status:
  0  success; ask: answered
  1  an error, described in one line on standard error
  2  wrong arguments
  3  ask: clarification; forget, documents: nothing was found
  4  ask: refused
  5  ask: failed or superseded
  6  ingest: some files could not be read
  7  audit: some citations are wrong
  8  review: violations or gaps
  9  models: a model does not answer, or its context window is too small
 10  doctor: something that is configured does not work
 11  check: the change to the documents breaks questions

refdesk COMMAND --help explains the arguments of a command. Settings are environment
variables or lines of the file in --env-file; docs/settings.md lists them.
"""
_ENV_FILE = "--env-file"
_OWN_ERRORS = frozenset(
    {
        "CommandError", "ConfigError", "BrokerError", "MemoryStoreError", "KnowledgeError",
        "ModelError", "ReviewError", "GatewayError", "EnvelopeError", "UnknownFormatError",
        "ToolError", "WorkerError", "OutboundError",
    }
)  # fmt: skip


class _Version(argparse.Action):
    """Prints the version, which is determined only on request."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str | None = None) -> None:  # noqa: A002 - argparse's name
        super().__init__(option_strings, dest, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print the version and exit."""
        from importlib.metadata import version

        sys.stdout.write(f"refdesk {version('refdesk')}\n")
        parser.exit()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    # Files contain questions, documents, or secrets: only their owner may read them.
    os.umask(0o077)
    # The environment contains keys, and the processes that read documents run as the same user.
    hide_memory()
    words = list(sys.argv[1:] if arguments is None else arguments)
    parser = make_parser(words)
    _suggest_verb(parser, _find_verb(words))
    chosen, unknown = parser.parse_known_args(words)
    if unknown:
        _refuse_unknown(parser, words, unknown)
    if chosen.verb is None:
        parser.print_help()
        return EXIT_USAGE
    # A job's container may lack the variable; the output of `check` is intended for jobs.
    is_read_by_runner = chosen.verb == "check" or "GITHUB_ACTIONS" in os.environ
    with without_commands() if is_read_by_runner else nullcontext():
        return _run(chosen)


def make_parser(words: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser with the arguments of the subcommand in these words."""
    parser = argparse.ArgumentParser(
        prog="refdesk",
        description="Answers questions from your documents and cites the sources.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, help="print the version and exit")
    about = "settings file (default: the variable REFDESK_ENV_FILE)"
    parser.add_argument(_ENV_FILE, metavar="FILE", help=about)
    verbs = parser.add_subparsers(dest="verb", metavar="COMMAND")
    named = _find_verb(words)
    for verb, purpose in VERBS.items():
        sub = verbs.add_parser(verb, help=purpose, description=format_sentence(purpose))
        # Only the module of the chosen verb is imported: the others may take half a second.
        if verb == named:
            # The option is also accepted after the verb; a default here would replace a value
            # given before it.
            sub.add_argument(_ENV_FILE, metavar="FILE", help=about, default=argparse.SUPPRESS)
            _find_function(_load(verb), "add_arguments", verb)(sub)
    return parser


def _run(chosen: argparse.Namespace) -> int:
    try:
        module = _load(chosen.verb)
        _name_env_file(chosen.env_file)
        _configure_logging()
        status = int(_find_function(module, "run", chosen.verb)(chosen))
        sys.stdout.flush()
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except Exception as error:  # noqa: BLE001 - every error is shown on one line
        return _report_error(_sole(error))
    return status


def _load(verb: str) -> ModuleType:
    # The objects that the modules create are permanent: garbage collection would take a tenth of
    # the start.
    gc.set_threshold(GARBAGE_THRESHOLD)
    return importlib.import_module(f"cli.commands.{MODULES.get(verb, verb)}")


def _find_function(module: ModuleType, name: str, verb: str) -> Callable[..., Any]:
    """Return a function of a subcommand: `run`, or for example `run_sources` in a module with
    several subcommands.
    """
    own = f"{name}_{verb}" if name == "run" else f"add_{verb}_arguments"
    function: Callable[..., Any] = getattr(module, own, None) or getattr(module, name)
    return function


def _report_error(error: Exception) -> int:
    if isinstance(error, BrokenPipeError):
        # The reader of the pipe has closed it; without this, Python reports it again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    else:
        sys.stderr.write(f"refdesk: {_format_error(error)}\n")
    return EXIT_ERROR


def _find_verb(words: Sequence[str]) -> str | None:
    """Return the first word that is neither `--env-file` nor its value."""
    rest = list(words)
    if rest[:1] == [_ENV_FILE]:
        rest = rest[2:]
    elif rest and rest[0].startswith(f"{_ENV_FILE}="):
        rest = rest[1:]
    return rest[0] if rest else None


def _suggest_verb(parser: argparse.ArgumentParser, named: str | None) -> None:
    """Exit with a suggestion if the subcommand is unknown but similar to a known one."""
    if named is None or named in VERBS or named.startswith("-"):
        return
    if similar := difflib.get_close_matches(named, VERBS, n=1):
        parser.error(f"unknown command {named!r}; did you mean {similar[0]!r}?")


def _refuse_unknown(
    parser: argparse.ArgumentParser, words: Sequence[str], unknown: Sequence[str]
) -> None:
    """Exit with an error about unknown arguments, and suggest a similar option if there is one."""
    named = next((word.partition("=")[0] for word in unknown if word.startswith("--")), "")
    similar = difflib.get_close_matches(named, _list_options(parser, words), n=1)
    hint = f"; did you mean {similar[0]!r}?" if similar else ""
    parser.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")


def _list_options(parser: argparse.ArgumentParser, words: Sequence[str]) -> set[str]:
    """Return the options that the help of the command in these words mentions."""
    verb = _find_verb(words)
    rest = words if verb is None else words[words.index(verb) :]
    command = takewhile(lambda word: not word.startswith("-"), rest)
    printed = StringIO()
    with redirect_stdout(printed), suppress(SystemExit):
        parser.parse_args([*command, "--help"])
    return set(re.findall(r"--[a-z][a-z-]*", printed.getvalue()))


def _name_env_file(path: str | None) -> None:
    from config.env_file import VARIABLE

    if path is not None:
        # Child processes read the same file, whatever their working directory is.
        os.environ[VARIABLE] = os.path.abspath(path) if path else ""


def _configure_logging() -> None:
    from config.env_file import describe_env_file, find_env_file
    from config.settings import Settings, load_settings
    from deploy.logging_setup import configure_logging, secrets_of

    settings = load_settings()
    for line in describe_env_file(Settings, find_env_file(), os.environ):
        sys.stderr.write(f"refdesk: {line}\n")
    configure_logging(settings.log_level, secrets=secrets_of(settings))


def _sole(error: Exception) -> Exception:
    """Return the error inside the exception groups that task groups raise."""
    while isinstance(error, ExceptionGroup):
        own = [exception for exception in error.exceptions if _is_own(exception)]
        error = own[0] if own else error.exceptions[0]
    return error


def _format_error(error: Exception) -> str:
    """Return the message for an error: Refdesk's own errors unchanged, and system errors with the
    file they concern.
    """
    if _is_own(error):
        return str(error)
    if isinstance(error, OSError) and error.strerror is not None:
        about = "" if error.filename is None else f": {os.fsdecode(error.filename)!r}"
        if error.errno == errno.ENOSPC:
            about += "; free some space for the data folder (see: refdesk doctor) and in /tmp"
        return f"{error.strerror}{about}"
    _show_where(error)
    return f"unexpected error, {type(error).__name__}: {error}"


def _show_where(error: Exception) -> None:
    import structlog

    structlog.get_logger("command").debug("command_failed", exc_info=error)


def _is_own(error: Exception) -> bool:
    """Return whether an error belongs to this product and has a human-readable message."""
    return any(kind.__name__ in _OWN_ERRORS for kind in type(error).__mro__)


if __name__ == "__main__":
    sys.exit(main())
