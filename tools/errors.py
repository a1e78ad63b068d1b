"""Errors of tools, by what the executor does about them.

ToolError
├── InvalidInput       the input is well formed, but it means nothing: reported as `validation`
├── ToolFailed         the tool did not succeed; repeated where its effect class allows
│   ├── ToolRejected   the same call cannot succeed later: never repeated
│   └── OutcomeUnknown the call was sent, but it is unknown whether it had an effect
├── InvalidToolSet     a file of a tool set cannot be used
└── InvalidSchema      a schema of others cannot be used
"""


class ToolError(Exception):
    """A tool has no result."""


class InvalidInput(ToolError):  # noqa: N818 - names a state
    """The input has the right form, but names something that does not exist."""


class ToolFailed(ToolError):  # noqa: N818 - as above
    """The tool did not succeed; a later call may.

    `status` is what the other side stated as a number: all that a log says of its answer.
    """

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class ToolRejected(ToolFailed):
    """The tool cannot do this; a later call cannot either."""


class OutcomeUnknown(ToolFailed):
    """The call was sent, but there was no answer: it may have had an effect."""


class InvalidToolSet(ToolError):  # noqa: N818 - as above
    """A file of a tool set cannot be used; the message names the place and the expected form."""


class InvalidSchema(ToolError):  # noqa: N818 - as above
    """A schema of others is malformed, too large, or too costly to check values by."""
