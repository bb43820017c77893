"""Ends the threads of models before the interpreter goes, and keeps a forked
process from waiting for threads that it does not have."""

from __future__ import annotations

import atexit
import os
import threading

from . import _native

_pid = os.getpid()


def _end() -> None:
    if os.getpid() == _pid:
        _native.end_interpreter(threading.active_count() > 1)


def _begin_child() -> None:
    global _pid
    _pid = os.getpid()
    _native.after_fork()


atexit.register(_end)
os.register_at_fork(after_in_child=_begin_child)
