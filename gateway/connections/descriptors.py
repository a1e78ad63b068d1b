"""Raises the number of files and sockets that the process may have open."""

import resource

MOST_DESCRIPTORS = 65_536
"""The bound that is used in place of an unlimited one, and the most that is asked for."""


def raise_descriptor_limit() -> int:
    """Raise the soft limit to the hard one, at most to `MOST_DESCRIPTORS`; return the limit.

    A soft limit that is higher already stays; an unlimited one is returned as the bound.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return MOST_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted
