"""Hides the memory and the environment of this process from other processes of the same user.

Otherwise, every process of a user can read `/proc/PID/environ` and `/proc/PID/mem` of the others,
so that a reader compromised by a document could obtain the keys of the desk, or the documents of
another reader.
"""

import ctypes
import sys

_SET_DUMPABLE = 4
_NO_NEW_PRIVILEGES = 38


def hide_memory() -> None:
    """Allow only the system to read this process; this is the default on macOS."""
    _control(_SET_DUMPABLE, 0)


def forgo_privileges() -> None:
    """Prevent this process from gaining privileges through programs that it may start."""
    _control(_NO_NEW_PRIVILEGES, 1)


def _control(option: int, value: int) -> None:
    # Python has no function for it. An old kernel refuses an option, which has no consequences.
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
