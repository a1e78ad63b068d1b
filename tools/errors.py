"""Errors of tools, by how the executor handles them.

ToolError
├── InvalidInput       the input is well-formed but invalid; reported as `validation`
├── ToolFailed         the tool failed; retried if its effect class allows
│   ├── ToolRejected   the same call would fail again; never retried
│   └── OutcomeUnknown the call was sent, but its effect is unknown
├── InvalidToolSet     the file of a tool set is invalid
└── InvalidSchema      a third-party schema cannot be used
"""


class ToolError(Exception):
    """The root of the errors of tools."""


class InvalidInput(ToolError):  # noqa: N818 - names a state
    """The input is well-formed but invalid, such as an id that does not exist."""


class ToolFailed(ToolError):  # noqa: N818 - as above
    """The tool failed; a retry may succeed.

    `status` is the status or error code from the server; this is the only part of a response that
    is logged.
    """

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class ToolRejected(ToolFailed):
    """The tool failed, and would fail again if retried."""


class OutcomeUnknown(ToolFailed):
    """The call was sent, but there was no valid response; it may have had an effect."""


class InvalidToolSet(ToolError):  # noqa: N818 - as above
    """The file of a tool set is invalid; the message states where, and what was expected."""


class InvalidSchema(ToolError):  # noqa: N818 - as above
    """A third-party schema is malformed, too large, or too expensive for validation."""
