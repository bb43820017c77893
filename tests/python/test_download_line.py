"""What a terminal shows of a download."""

import io

import pytest

import afterglow
from afterglow import utils


class Terminal(io.StringIO):
    def isatty(self):
        return True


def loading(monkeypatch, *told):
    """Takes the library's place: tells of a download, which then fails.
    Returns the terminal."""

    def load(path, *, progress, **options):
        for one in told:
            progress(*one)
        raise OSError("the network is down")

    monkeypatch.setattr(utils._native, "load", load)
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    return terminal


def test_is_one_line_that_ends(monkeypatch):
    terminal = loading(
        monkeypatch,
        ("", 0, 0),
        ("a.json", 0, 0),
        ("a.json", 2_000_000, 90_000_000),
        ("b.gguf", 90_000_000, 90_000_000),
        ("b.gguf", 90_000_000, 90_000_000),
    )
    with pytest.raises(OSError):
        afterglow.load("someone/model")
    assert terminal.getvalue().split("\r") == [
        "",
        "a.json: 0 MB\033[K",
        "a.json: 2 of 90 MB\033[K",
        "b.gguf: 90 of 90 MB\033[K",
        "b.gguf: 90 of 90 MB\033[K\n",
    ]


def test_is_not_there_before_a_file(monkeypatch):
    terminal = loading(monkeypatch, ("", 0, 0), ("", 0, 0))
    with pytest.raises(OSError):
        afterglow.load("someone/model")
    assert terminal.getvalue() == ""


def test_a_function_of_ones_own_is_called_instead(monkeypatch):
    told = []
    terminal = loading(monkeypatch, ("a.json", 1, 2))
    with pytest.raises(OSError):
        afterglow.load("x/y", progress=lambda *one: told.append(one))
    assert told == [("a.json", 1, 2)]
    assert terminal.getvalue() == ""
