"""Errors of commands."""


class CommandError(Exception):
    """The command cannot do what the user requested; its text is shown in one line."""
