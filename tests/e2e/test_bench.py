"""`afterglow bench`: what it prints, and what it refuses."""

import json
import os
import statistics
import subprocess

import pytest
from serving import MODEL, PROGRAM, ROOT

SURROUNDINGS = {"AFTERGLOW_MODEL": str(MODEL), "AFTERGLOW_TARGET": ""}
QUICK = ["-p", "32", "-n", "4", "-r", "3", "--threads", "1"]


def bench(*arguments, status: int = 0, **environment):
    done = subprocess.run(
        [str(PROGRAM), "bench", *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **SURROUNDINGS, **environment},
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done


def objects(*arguments, **environment) -> list[dict]:
    return json.loads(bench(*arguments, "--json", **environment).stdout)


@pytest.fixture(scope="module")
def measured():
    return objects(*QUICK, "--depth", "0,300", "--model", MODEL)


def test_each_combination_is_one_object(measured):
    names = [each["test"] for each in measured]
    assert names == ["pp32", "tg4", "pp32@300", "tg4@300"]


def test_objects_say_what_was_measured_and_how(measured):
    for each in measured:
        assert len(each["samples"]) == 3
        mean = statistics.mean(each["samples"])
        assert each["tokens_per_second"] == pytest.approx(mean)
        deviation = statistics.stdev(each["samples"])
        assert each["deviation"] == pytest.approx(deviation)
        assert each["model"] == MODEL.stem
        assert each["path"] == str(MODEL)
        assert each["size"] == MODEL.stat().st_size
        assert 130e6 < each["params"] < 140e6
        assert each["backend"] == "cpu"
        assert each["activations"] == "int16"
        assert each["threads"] == 1
        assert each["target"]
        assert 0 < each["load_seconds"] < 60
        assert each["peak_memory"] > each["size"] / 2
        assert each["memory_bytes_per_second"] > 1e8


def test_decoding_reads_all_weights_and_the_kv_before_it(measured):
    short, deep = (
        each["profile"]["bytes_per_token"]
        for each in measured
        if each["test"].startswith("tg")
    )
    # All weights but norms, packed: near the size of the file.
    assert 0.85 < short / MODEL.stat().st_size < 1.15
    # 30 layers of 3 heads of K and V, 64 of 2 bytes each, for 300 tokens.
    assert deep - short == pytest.approx(300 * 30 * 3 * 2 * 64 * 2, rel=0.01)


def test_kernels_and_the_rest_make_up_the_time(measured):
    for each in measured:
        profile = each["profile"]
        kernels = sum(kernel["seconds"] for kernel in profile["kernels"])
        share = 1 - kernels / profile["thread_seconds"]
        assert profile["outside_kernels"] == pytest.approx(max(share, 0))
        assert share < 0.5
        names = {kernel["name"] for kernel in profile["kernels"]}
        assert {"linear_int", "attend_page", "rms_norm", "rope"} <= names


def test_lists_of_threads_and_activations_are_combined():
    found = objects(
        "-p", "16", "-n", "0", "-r", "1", "--no-profile",
        "--threads", "1,2", "--activations", "int8,f32",
    )  # fmt: skip
    assert [(each["threads"], each["activations"]) for each in found] == [
        (1, "int8"), (1, "f32"), (2, "int8"), (2, "f32"),
    ]  # fmt: skip
    assert all("profile" not in each for each in found)


def test_the_table_has_a_row_for_each_test():
    out = bench(*QUICK).stdout
    rows = [line.split() for line in out.splitlines() if MODEL.stem in line]
    assert any("pp32" in row and "±" in row for row in rows)
    assert any("tg4" in row and "±" in row for row in rows)
    assert "weights and KV a token" in out
    assert "linear_int" not in out


def test_profile_names_kernels():
    out = bench("-p", "0", "-n", "4", "-r", "1", "--profile").stdout
    assert "linear_int" in out and "attend_page" in out and "no kernel" in out


def test_the_target_that_is_forced_is_the_one_measured():
    info = json.loads(bench("--info", "--json").stdout)
    runnable = [each["name"] for each in info["targets"] if each["runs_here"]]
    forced = runnable[-2] if len(runnable) > 2 else runnable[-1]
    arguments = ["-p", "8", "-n", "0", "-r", "1", "--no-profile"]
    (each,) = objects(*arguments, AFTERGLOW_TARGET=forced)
    assert each["target"] == forced


def test_info_tells_machine_and_kernels():
    info = json.loads(bench("--info", "--json").stdout)
    assert info["threads"] == os.cpu_count()
    assert info["memory"] > 1e8
    assert info["activations"] == "int16"
    names = [target["name"] for target in info["targets"]]
    assert "scalar" in names and info["target"] in names
    assert not info["target_forced"]
    forced = bench("--info", AFTERGLOW_TARGET="scalar").stdout
    line = next(each for each in forced.splitlines() if "scalar" in each)
    assert "used: AFTERGLOW_TARGET" in line


def test_perplexity_of_rounded_modes_is_near_that_of_f32():
    text = ROOT / "tests/data/english.txt"
    exact, int16, int8 = objects(
        "--perplexity", text, "--tokens", "64", "--window", "40",
        "--activations", "int16,int8",
    )  # fmt: skip
    assert [exact["activations"], int16["activations"]] == ["f32", "int16"]
    assert (exact["windows"], exact["positions"]) == (2, 39 + 23)
    assert 5 < exact["perplexity"] < 100
    assert 0 < int16["mean_divergence"] < int8["mean_divergence"] < 0.02
    assert abs(int8["perplexity_change"]) < 0.05


WRONG = [
    (["-p", "many"], "-p"),
    (["-p", "-1"], "-p"),
    (["--threads", "x"], "threads"),
    (["--activations", "int4"], "int4"),
    (["--info", "--restore"], "excludes"),
    (["--restore", "-p", "16"], "excludes"),
    (["--perplexity", "nowhere.txt"], "nowhere.txt"),
    (["--window", "100"], "requires"),
    (["--dir", "."], "requires"),
    (["--profile", "--no-profile"], "excludes"),
]


@pytest.mark.parametrize("arguments, word", WRONG)
def test_wrong_command_lines_say_what_is_wrong(arguments, word):
    assert word in bench(*arguments, status=2).stderr


def test_failures_say_what_failed():
    err = bench("--model", "/nowhere/model.gguf", status=1).stderr
    assert "/nowhere/model.gguf" in err
    err = bench("-p", "0", "-n", "0", status=1).stderr
    assert "nothing to measure" in err
    err = bench("-p", "512", "-n", "0", "--depth", "100000", status=1).stderr
    assert "pp512@100000" in err and "100512" in err
    err = bench(*QUICK, AFTERGLOW_TARGET="abacus", status=1).stderr
    assert "abacus" in err
