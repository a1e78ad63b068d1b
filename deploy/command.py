"""The `refdesk` command: reads the arguments, runs one verb, and tells errors in one line."""

import argparse
import importlib
import sys
from collections.abc import Sequence

VERBS: dict[str, str] = {
    "demo": "ingest the example documents, ask three questions, show one trace",
    "ask": "ask one question and print the answer with its sources",
    "chat": "talk to the desk in the terminal",
    "ingest": "read documents into the index",
    "up": "run every role in this process",
    "worker": "run a worker process for some roles",
    "trace": "show the journey of one question",
    "status": "show what waits, runs and was given up, role by role",
    "dead": "look at dead letters, run them again, or drop them",
    "evaluate": "measure the desk on a folder of evaluation data",
}
EXIT_ERROR = 1
EXIT_STATUSES = {"answered": 0, "clarification": 3, "refused": 4, "failed": 5, "superseded": 5}
EPILOG = """\
exit status of ask: 0 answered, 3 clarification, 4 refused, 5 failed;
1 an error, 2 a wrong use of the command.

Settings come from the environment or a .env file; docs/settings.md lists them.
"""


class CommandError(Exception):
    """The command cannot do what was asked; its text is shown to the person, in one line."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    parser = _parser(words)
    chosen = parser.parse_args(words)
    if chosen.verb is None:
        parser.print_help()
        return 2
    module = importlib.import_module(f"deploy.commands.{chosen.verb}")
    try:
        return int(module.run(chosen))
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return EXIT_ERROR
    except Exception as error:
        if not _is_told(error):
            raise
        sys.stderr.write(f"refdesk: {error}\n")
        return EXIT_ERROR


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="refdesk",
        description="A reference desk: answers questions from your documents, and shows where.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    for verb, purpose in VERBS.items():
        sub = verbs.add_parser(verb, help=purpose, description=f"{purpose.capitalize()}.")
        # Only the chosen verb's module is loaded: others may import half a second of libraries.
        if verb in words[:1]:
            importlib.import_module(f"deploy.commands.{verb}").add_arguments(sub)
    return parser


def _is_told(error: Exception) -> bool:
    """Whether an error is one of ours, whose text is written for people."""
    roots = {"CommandError", "ConfigError", "BrokerError", "MemoryStoreError", "KnowledgeError"}
    roots |= {"ModelError", "GatewayError", "EnvelopeError", "UnknownFormatError"}
    return any(kind.__name__ in roots for kind in type(error).__mro__)


if __name__ == "__main__":
    sys.exit(main())
