"""Returns freed memory that the allocator keeps to the operating system."""

import ctypes


def return_unused_memory() -> None:
    """Return memory that glibc keeps after the engine has built a segment; does nothing on other
    systems.

    Threads of the engine leave it in several heaps, which grew by 4 kB per chunk without this call.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
