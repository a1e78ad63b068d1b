"""Formats the help texts of the command."""


def format_sentence(purpose: str) -> str:
    """Return a purpose, such as `list all keys`, as a sentence."""
    return f"{purpose[:1].upper()}{purpose[1:]}."
