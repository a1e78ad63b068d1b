"""Ports for servers that tests start."""

import os
import random
import socket
from contextlib import closing

_RANDOM = random.Random(os.getpid())


def free_port(*offsets: int) -> int:
    """Return a free port of this machine, whose ports at these offsets are free as well.

    It lies below the range from which systems choose the local port of a connection (32768 on
    Linux): a port that the system itself chose can be taken again before the server listens on it.
    """
    while True:
        port = _RANDOM.randrange(20_000, 32_000)
        try:
            for offset in (0, *offsets):
                with closing(socket.socket()) as probe:
                    probe.bind(("127.0.0.1", port + offset))
        except OSError:
            continue
        return port
