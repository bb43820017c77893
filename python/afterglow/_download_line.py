"""How far a download is, on a terminal."""

from __future__ import annotations

from typing import TextIO


class DownloadLine:
    """One line, written over and over until end()."""

    def __init__(self, terminal: TextIO) -> None:
        self._terminal = terminal
        self._begun = False

    def __call__(self, file: str, done: int, total: int) -> None:
        if not file:
            return  # the hub is asked which files there are
        of = f" of {total / 1e6:.0f}" if total else ""
        self._write(f"\r{file}: {done / 1e6:.0f}{of} MB\033[K")
        self._begun = True

    def end(self) -> None:
        """What is written next begins a line. The second time nothing."""
        if self._begun:
            self._write("\n")
        self._begun = False

    def _write(self, text: str) -> None:
        self._terminal.write(text)
        self._terminal.flush()
