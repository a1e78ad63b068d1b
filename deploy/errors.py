"""Errors of commands."""


class CommandError(Exception):
    """The command cannot do what was asked; its text is shown to the person, in one line."""
