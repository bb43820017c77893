"""GET /metrics, read by Prometheus' own Python client."""

import pytest
from calls import call, complete, good
from prometheus_client.parser import text_string_to_metric_families
from serving import Server, wait_for

PROMPT = "Many hands make light work, and too many cooks. " * 80


@pytest.fixture(scope="module")
def busy(tmp_path_factory):
    """A server that has answered, read from memory and read from disk."""
    directory = tmp_path_factory.mktemp("metrics") / "cache"
    directory.mkdir(mode=0o700)
    with Server(cache=directory) as server:
        complete(server, PROMPT)
        assert server.terminate() == 0
    with Server(cache=directory) as server:
        answers = [
            complete(server, PROMPT),
            complete(server, PROMPT),
            complete(server, "Something new, " * 40, max_tokens=5),
        ]
        call(server, "POST", "/v1/completions", {"prompt": ""})
        good(server, "POST", "/v1/cache/flush")
        yield server, answers


def samples(server):
    text = good(server, "GET", "/metrics")
    found = {}
    for family in text_string_to_metric_families(text):
        assert family.name.startswith("afterglow_")
        assert family.documentation
        assert family.type in ("counter", "gauge", "histogram", "summary")
        for sample in family.samples:
            key = (sample.name.removeprefix("afterglow_"),)
            key += tuple(sorted(sample.labels.values()))
            assert key not in found
            found[key] = sample.value
    return found


def test_the_content_type_is_the_text_formats(busy):
    connection = busy[0].connect()
    connection.request("GET", "/metrics")
    response = connection.getresponse()
    assert response.getheader("Content-Type").startswith(
        "text/plain; version=0.0.4"
    )
    connection.close()


def test_tokens_are_counted_by_where_they_came_from(busy):
    server, answers = busy
    metrics = samples(server)
    timings = [answer["timings"] for answer in answers]
    for source, member in (
        ("ram", "cache_ram_n"),
        ("disk", "cache_disk_n"),
        ("computed", "prompt_n"),
    ):
        expected = sum(timing[member] for timing in timings)
        assert expected > 0
        assert metrics["prompt_tokens_total", source] == expected
    assert metrics["cache_hits_total", "disk"] == 1
    assert metrics["cache_hits_total", "ram"] >= 1
    assert metrics["cache_lookups_total",] == 3
    assert metrics["generated_tokens_total",] == sum(
        timing["predicted_n"] for timing in timings
    )


def test_requests_are_counted_by_their_end(busy):
    server, answers = busy
    metrics = samples(server)
    for reason in ("stop", "length"):
        assert metrics["requests_total", reason] == sum(
            answer["choices"][0]["finish_reason"] == reason
            for answer in answers
        )
    assert metrics["requests_total", "error"] == 0
    assert metrics["requests_running",] == 0
    assert metrics["requests_queued",] == 0
    assert metrics["requests_preparing",] == 0
    assert metrics["http_responses_total", "400"] == 1
    assert metrics["http_responses_total", "200"] >= len(answers)


def test_waits_are_counted_from_the_arrival(busy):
    server, answers = busy
    metrics = samples(server)
    timings = [answer["timings"] for answer in answers]
    for name, members in (
        ("queue_seconds", ["queue_ms"]),
        ("time_to_first_token_seconds", ["queue_ms", "restore_ms", "prompt_ms"]),
    ):
        assert metrics[f"{name}_count",] == len(answers)
        expected = sum(timing[part] for timing in timings for part in members)
        assert metrics[f"{name}_sum",] == pytest.approx(expected / 1000, 0.01)
    assert metrics["request_seconds_count",] == len(answers)
    assert (
        metrics["request_seconds_sum",]
        >= metrics["time_to_first_token_seconds_sum",]
    )


def test_restores_cost_less_than_they_save(busy):
    metrics = samples(busy[0])
    assert metrics["restore_seconds_count",] >= 1
    assert 0 < metrics["restore_seconds_sum",]
    assert metrics["prefill_seconds_per_token",] > 0
    assert (
        metrics["prefill_seconds_saved_total",]
        > metrics["restore_seconds_sum",]
    )
    assert metrics["recomputed_requests_total",] == 0
    assert metrics["recomputed_tokens_total",] == 0


def test_tiers_say_what_they_hold(busy):
    server, _ = busy
    metrics = samples(server)
    cache = good(server, "GET", "/v1/cache")
    for tier in ("ram", "disk"):
        assert metrics["cache_blocks", tier] == cache[tier]["blocks"] > 0
        assert metrics["cache_budget_bytes", tier] == (
            cache[tier]["budget_bytes"]
        )
        assert 0 < metrics["cache_bytes", tier] < (
            metrics["cache_budget_bytes", tier]
        )
    by_type = cache["entries_by_type"]
    for kind, count in by_type.items():
        assert metrics["cache_entries", kind] == count
    assert metrics["store_queue_blocks",] == 0
    assert metrics["store_written_bytes_total", "block"] > 0
    assert metrics["store_written_bytes_total", "manifest"] > 0
    assert metrics["store_syncs_total",] > 0
    assert metrics["store_writing",] == 1
    for name in ("corrupt_blocks", "capped_blocks", "write_failures"):
        assert metrics[f"store_{name}_total",] == 0
    for reason in ("budget", "cleared"):
        assert metrics["cache_evicted_blocks_total", reason, "disk"] == 0


def test_a_stop_string_counts_as_a_stop(busy):
    server, answers = busy
    before = samples(server)
    text = complete(server, PROMPT, max_tokens=24)["choices"][0]["text"]
    stop = text[len(text) // 2 :][:3]
    answer = complete(server, PROMPT, max_tokens=2000, stop=[stop])
    assert answer["choices"][0]["finish_reason"] == "stop"
    # A request counts as ended a moment after its last word.
    wait_for(lambda: samples(server)["requests_running",] == 0, "an end")
    after = samples(server)
    assert (
        after["requests_total", "stop"] == before["requests_total", "stop"] + 1
    )
    assert (
        after["requests_total", "cancelled"]
        == before["requests_total", "cancelled"]
    )
