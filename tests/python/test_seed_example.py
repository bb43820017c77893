"""The usage example that the library began with, line by line."""

import re
from pathlib import Path

import pytest
from texts import sentences

EXAMPLE = Path(__file__).with_name("seed_example.py").read_text()
PROMPT = sentences(60)
STATISTICS = re.compile(
    r"Prompt: (\d+) tokens \((\d+) cached\), ([\d.]+) tokens-per-sec\n"
    r"Generation: (\d+) tokens, ([\d.]+) tokens-per-sec\n"
    r"Peak memory: [\d.]+ GB\n"
)

# The example adds to `new` without making it.
BEFORE = "new = ''\n"
# Behind its first loop, so that the two answers can be told apart.
BETWEEN = "\nfirst = cache\nprint('\\n--- second')\n"
AFTER = """
print('\\n--- saved', metadata, len(cache))
save_cache(first, filename='first.safetensors')
"""

NEW_PROCESS = """
import sys
from afterglow import generate, load, load_cache, stream_generate

model, tokenizer = load(MODEL)
cache, metadata = load_cache(filename=sys.stdin.readline() or FILE)
text = ''
for output in stream_generate(
    model, tokenizer, PROMPT, max_tokens=100, cache_history=cache
):
    text += output.text
print(output.prompt_tokens, output.cached_tokens)
print(metadata)
print(text, end='')
"""


@pytest.fixture(scope="module")
def run(path, tmp_path_factory):
    """Runs the example: its folder, its output and its errors."""
    from conftest import Script

    folder = tmp_path_factory.mktemp("example")
    example = EXAMPLE.replace("'/Path/to/model'", "MODEL")
    example = example.replace("'Your long prompt here...'", repr(PROMPT))
    mark = "\n# Second generation"
    assert example.count(mark) == 1
    example = example.replace(mark, BETWEEN + mark)
    process = Script(BEFORE + example + AFTER, folder)
    output, errors = process.finish(120)
    return folder, output, errors


def test_the_second_run_computes_one_token(run, tokenizer):
    _, _, errors = run
    first, second = STATISTICS.findall(errors)
    length = len(tokenizer.encode(PROMPT))
    assert first[:2] == (str(length), "0")
    assert second[:2] == (str(length), str(length - 1))


def test_both_runs_answer_the_same(run):
    _, output, _ = run
    first, rest = output.split("\n--- second\n")
    second, saved = rest.split("\n--- saved ")
    assert len(first) > 100
    assert second == first
    assert saved.startswith("{'model_id': 'My random model'} ")


@pytest.mark.parametrize("file", ["test", "first"])
def test_a_new_process_continues_with_the_same_text(run, script, file):
    folder, output, _ = run
    answer, _ = script(
        f"PROMPT = {PROMPT!r}\nFILE = '{file}.safetensors'\n{NEW_PROCESS}",
        folder,
    ).finish(120)
    counts, metadata, text = answer.split("\n", 2)
    total, cached = map(int, counts.split())
    assert cached == total - 1
    expected = {"model_id": "My random model"} if file == "test" else {}
    assert metadata == str(expected)
    assert text == output.split("\n--- second\n")[0]
