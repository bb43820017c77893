#!/usr/bin/env python3
"""Writes text_golden/tool_calls.json: what mlx_lm's tool parsers, its text
state machine and its recognition of formats make of tool_call_cases.py.
With --check it only tells whether the file is what they give today."""

import argparse
import importlib
import json
import logging
import random
import sys
from pathlib import Path
from types import SimpleNamespace

import tool_call_cases as cases
from mlx_lm import tokenizer_utils
from mlx_lm.chat_templates import muse_spark
from mlx_lm.generate import TextStateMachine, make_text_state_machine

GOLDEN = Path(__file__).resolve().parent / "text_golden" / "tool_calls.json"


def parser_of(name: str):
    return importlib.import_module(f"mlx_lm.tool_parsers.{name}")


def formatted(call: dict) -> dict:
    """A call as the server's answers hold it."""
    call = dict(call)
    arguments = json.dumps(call["arguments"], ensure_ascii=False)
    if not isinstance(call["name"], str) or "NaN" in arguments:
        raise TypeError("not a call that JSON can hold")
    return {
        "id": call.get("id") or "",
        "name": call["name"],
        "arguments": arguments,
    }


def calls_of(name: str, text: str, tools) -> dict:
    """The calls; `error` for a call the server leaves out with a warning,
    `crash` for one that ends the whole answer."""
    try:
        parsed = parser_of(name).parse_tool_call(text, tools)
        if not isinstance(parsed, list):
            parsed = [parsed]
        return {"calls": [formatted(call) for call in parsed]}
    except ValueError as e:
        return {"error": type(e).__name__}
    except Exception as e:
        return {"crash": type(e).__name__}


def call_goldens() -> list[dict]:
    found = []

    def add(name: str, text: str, tools: bool) -> None:
        given = cases.TOOLS if tools else None
        result = calls_of(name, text, given)
        found.append({"format": name, "text": text, "tools": tools, **result})

    for name, texts in cases.CASES.items():
        for text in texts:
            add(name, text, False)
            add(name, text, True)
    for text in cases.CASES["glm47"]:
        add("laguna", text, True)
    for value in cases.VALUES:
        for name, write in cases.BY_SCHEMA.items():
            for parameters in cases.NAMES:
                add(name, write(value, parameters), True)
        for name, write in cases.BY_TEXT.items():
            add(name, write(value, "i"), False)
    return found


class Model(SimpleNamespace):
    """As much of a tokenizer as mlx_lm asks to recognise formats."""

    def get_vocab(self) -> dict:
        return {token: i for i, token in enumerate(self.tokens)}

    def encode(self, text: str, add_special_tokens: bool) -> list[int]:
        return [0]


def answer_goldens() -> list[dict]:
    found = []
    for marks, name, begins, text in cases.ANSWERS:
        muse = muse_spark.RESPONSE_FORMAT["transitions"]
        xtml = marks == "xtml"
        tokens = cases.XTML if xtml else []
        if xtml:
            marks = tokenizer_utils._infer_thinking(Model(tokens=tokens))[:2]
        further = muse if marks == "muse" else {}
        marks = None if marks == "muse" else marks
        parser = parser_of(name) if name else None
        tokenizer = SimpleNamespace(
            has_thinking=marks is not None,
            think_start=marks and marks[0],
            think_end=marks and marks[1],
            has_tool_calling=parser is not None,
            tool_call_start=parser and parser.tool_call_start,
            tool_call_end=parser and parser.tool_call_end,
            structural_markers=tokenizer_utils._infer_structural_markers(
                Model(tokens=tokens)
            ),
            response_transitions=further,
        )
        found.append(
            {
                "reasoning_marks": marks and list(marks),
                "format": name,
                "begins": begins,
                "further": "xtml" if xtml else "muse" if further else "",
                "text": text,
                **play(make_text_state_machine(tokenizer), begins, text, name),
            }
        )
    return found


def play(machine, begins: str, text: str, name: str | None) -> dict:
    """What the server collects from an answer that is cut off at the end."""
    state = machine.make_state(begins)
    draw = random.Random(7)
    segments = []
    while text:
        size = draw.randint(1, 5)
        piece, text = text[:size], text[size:]
        state, more = TextStateMachine.split(state, piece)
        segments += more
    state, held, last = TextStateMachine.flush(state)
    segments.append((last, held))
    said = {"content": "", "reasoning": ""}
    calls = []
    call = ""
    previous = begins
    for part, piece in segments:
        if part == "tool":
            call += piece
        elif part == "reasoning":
            said["reasoning"] += piece
        elif part == "normal":
            if previous == "tool":
                calls.append(call)
                call = ""
            said["content"] += piece
        previous = part
    if previous == "tool" and call:
        calls.append(call)
    results = [calls_of(name, one, cases.TOOLS) for one in calls]
    return {**said, "results": results}


def model_goldens() -> list[dict]:
    found = []
    for template, tokens in cases.MODELS:
        model = Model(chat_template=template, tokens=tokens)
        marks = tokenizer_utils._infer_thinking(model)[:2]
        found.append(
            {
                "template": template,
                "tokens": tokens,
                "format": tokenizer_utils._infer_tool_parser(model),
                "reasoning": list(marks) if marks[0] else None,
                "structural": list(
                    tokenizer_utils._infer_structural_markers(model)
                ),
            }
        )
    return found


def format_goldens() -> list[dict]:
    folder = Path(parser_of("glm47").__file__).parent
    names = sorted(p.stem for p in folder.glob("[!_]*.py"))
    return [
        {
            "name": name,
            "start": parser_of(name).tool_call_start,
            "end": parser_of(name).tool_call_end,
        }
        for name in names
    ]


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--check", action="store_true")
    logging.disable()
    made = {
        "tools": cases.TOOLS,
        "formats": format_goldens(),
        "calls": call_goldens(),
        "answers": answer_goldens(),
        "models": model_goldens(),
    }
    text = "{\n" + ",\n".join(
        json.dumps(key) + ": [\n"
        + ",\n".join(json.dumps(row) for row in rows) + "\n]"
        for key, rows in made.items()
    ) + "\n}\n"  # fmt: skip
    if options.parse_args().check:
        current = GOLDEN.exists() and GOLDEN.read_text() == text
        print(f"{GOLDEN.name} is {'current' if current else 'stale'}")
        return 0 if current else 1
    GOLDEN.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
