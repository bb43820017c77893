"""What is raised when no exception of Python's own says it."""

from __future__ import annotations


class Error(RuntimeError):
    """code: "unsupported", "corrupt", "overloaded", "cancelled",
    "unavailable", "exists" or "internal".
    """

    code: str

    def __init__(self, message: str, code: str = "internal") -> None:
        super().__init__(message)
        self.code = code
