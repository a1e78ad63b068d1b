"""Errors of commands."""

EXIT_SOME_FAILED = 6
"""The exit status of a command that completed only a part of its work."""


class CommandError(Exception):
    """The command cannot do what the user requested; its message is shown on one line."""
