"""Raises the number of files and sockets that the process may have open."""

import resource

MOST_DESCRIPTORS = 65_536


def raise_descriptor_limit() -> int:
    """Raise the soft limit to the hard one, at most to 65,536; return what holds now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return MOST_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted
