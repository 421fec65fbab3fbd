"""What a process that stays keeps of the memory it has freed.

glibc gives threads arenas of their own, up to eight for each core, and hardly ever gives back what one of them once
had. Threads here take turns anyway, Python's lock being one; what many arenas hold is each one's share of a peak.
"""

import ctypes
import os

_ARENA_MAX = -8  # M_ARENA_MAX of malloc.h
_ARENAS = 2


def share_arenas() -> None:
    """Has all threads share two arenas, where the C library is glibc; to be called before there are threads.

    MALLOC_ARENA_MAX and GLIBC_TUNABLES in the environment have the last word, as without it.
    """
    if "MALLOC_ARENA_MAX" in os.environ or "malloc.arena_max" in os.environ.get("GLIBC_TUNABLES", ""):
        return
    library = ctypes.CDLL(None)
    if hasattr(library, "gnu_get_libc_version"):
        library.mallopt(_ARENA_MAX, _ARENAS)
