"""Conversations under load, with clients that leave and a server that is
killed and started again: no answer differs from what it is alone.

AFTERGLOW_LOAD=full is the whole proof: 16 clients of 20 requests each and
three kills. Without it the same is done smaller."""

import http.client
import os
import random
import subprocess
import threading

from serving import PROGRAM, Server, ServerError, wait_for
from texts import sentences

FULL = os.environ.get("AFTERGLOW_LOAD") == "full"
CLIENTS, REQUESTS, KILLS = (16, 20, 3) if FULL else (5, 6, 1)
TURNS = 4
TOPICS = 8 if FULL else 3
LEAVING = 0.25  # of the requests
PATIENCE = 900  # seconds
PATH = "/v1/chat/completions"
GONE = (OSError, http.client.HTTPException, ServerError)


def system_prompt(topic: int) -> str:
    # Some conversations have the same beginning.
    return "Answer from these notes.\n" + sentences(14, seed=topic // 2)


def question(topic: int, turn: int) -> str:
    return f"{sentences(3, seed=100 * topic + turn)}\nWhat of that matters?"


def request(topic: int, answers: list[str]) -> dict:
    """The turn that follows so many answers."""
    messages = [{"role": "system", "content": system_prompt(topic)}]
    for turn, answer in enumerate(answers):
        messages.append({"role": "user", "content": question(topic, turn)})
        messages.append({"role": "assistant", "content": answer})
    messages.append(
        {"role": "user", "content": question(topic, len(answers))}
    )
    return {"messages": messages, "max_tokens": 10, "temperature": 0}


def played_alone() -> list[list[str]]:
    """The answers of each conversation, every prompt read in full."""
    conversations = []
    with Server("--activations", "int8") as server:
        for topic in range(TOPICS):
            answers: list[str] = []
            while len(answers) < TURNS:
                body = {**request(topic, answers), "cache_prompt": False}
                answer = server.ask(PATH, body)
                assert answer.cached_tokens == 0
                answers.append(answer.text)
            conversations.append(answers)
    return conversations


class Place:
    """Where the server is to be found at present."""

    def __init__(self, start):
        self._start = start
        self._mutex = threading.Lock()
        self._killed: set[Server] = set()
        self.server = start()

    def kill_and_restart(self) -> None:
        with self._mutex:
            self._killed.add(self.server)
            self.server.kill()
            self.server = self._start()

    def was_killed(self, server: Server) -> bool:
        with self._mutex:
            return server in self._killed

    def current(self) -> Server:
        """Waits while there is none."""
        with self._mutex:
            return self.server


class Client(threading.Thread):
    """Goes through conversations turn by turn; what a kill has cut is asked
    again."""

    def __init__(self, place: Place, seed: int, right: list[list[str]]):
        super().__init__()
        self._place = place
        self._draw = random.Random(seed)
        self._right = right
        self.answered = self.left = self.cut = self.cached = 0
        self.wrong: list[str] = []
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            topic, answers = 0, []
            while self.answered + self.left < REQUESTS:
                if not answers or len(answers) == TURNS:
                    topic, answers = self._draw.randrange(TOPICS), []
                self._turn(topic, answers)
        except BaseException as error:
            self.error = error

    def _turn(self, topic: int, answers: list[str]) -> None:
        server = self._place.current()
        body = request(topic, answers)
        try:
            if self._draw.random() < LEAVING:
                self._leave_half_way(server, body)
                self.left += 1
                return
            answer = server.ask(PATH, body)
        except GONE:
            if not self._place.was_killed(server):
                raise
            self.cut += 1
            return
        self.answered += 1
        self.cached += answer.cached_tokens
        right = self._right[topic][len(answers)]
        if answer.text != right:
            self.wrong.append(
                f"topic {topic}, turn {len(answers)}: {answer.text!r}, "
                f"not {right!r}"
            )
        answers.append(right)

    def _leave_half_way(self, server: Server, body: dict) -> None:
        events = server.stream(PATH, body)
        for _ in range(self._draw.randrange(1, 6)):
            if next(events, None) is None:
                break
        events.close()  # and with it the connection


def test_no_answer_is_wrong_whoever_leaves_and_whatever_is_killed(cache_dir):
    right = played_alone()
    place = Place(
        lambda: Server("--activations", "int8", cache=cache_dir)
    )
    try:
        clients = [Client(place, seed, right) for seed in range(CLIENTS)]
        for client in clients:
            client.start()
        for kill in range(1, KILLS + 1):
            enough = CLIENTS * REQUESTS * kill // (KILLS + 1)
            wait_for(
                lambda: sum(c.answered + c.left for c in clients) >= enough
                or any(c.error for c in clients),
                f"{enough} requests",
                PATIENCE,
            )
            place.kill_and_restart()
        for client in clients:
            client.join(PATIENCE)
            assert not client.is_alive()
        for client in clients:
            assert client.error is None, client.error
            assert client.wrong == []
        answered = sum(client.answered for client in clients)
        left = sum(client.left for client in clients)
        assert answered + left == CLIENTS * REQUESTS
        assert left > 0, "nobody left"
        assert sum(client.cached for client in clients) > 0
        wait_for(lambda: place.server.running() == 0, "end of all requests")
        place.server.flush()
        assert place.server.get("/v1/cache")["disk"]["corrupt_blocks"] == 0
        print(
            f"{answered} answers right, {left} left half way, "
            f"{sum(client.cut for client in clients)} cut by {KILLS} kills"
        )
    finally:
        place.server.kill()
    verify = subprocess.run(
        [PROGRAM, "cache", "verify", "--prompt-cache-dir", cache_dir],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert verify.returncode == 0, verify.stdout + verify.stderr
