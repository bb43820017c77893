import assert from "node:assert/strict";
import test from "node:test";
import { pieces } from "../page/js/event-stream.js";

const kText =
  ': keepalive 1/9\r\n\r\ndata: {"a":"é…"}\n\n' +
  "data: one\ndata: two\n\nid: 7\ndata:[DONE]\n\n";
const kWanted = [
  { kind: "comment", text: "keepalive 1/9" },
  { kind: "data", text: '{"a":"é…"}' },
  { kind: "data", text: "one\ntwo" },
  { kind: "data", text: "[DONE]" },
];

function streamOf(bytes, size) {
  let at = 0;
  return new ReadableStream({
    pull(control) {
      if (at >= bytes.length) control.close();
      else control.enqueue(bytes.slice(at, (at += size)));
    },
  });
}

test("pieces are the same however the bytes are cut", async () => {
  const bytes = new TextEncoder().encode(kText);
  for (let size = 1; size <= bytes.length; ++size) {
    const found = [];
    for await (const piece of pieces(streamOf(bytes, size))) found.push(piece);
    assert.deepEqual(found, kWanted, `in pieces of ${size}`);
  }
});

test("leaving early cancels the stream", async () => {
  let cancelled = false;
  const stream = new ReadableStream({
    pull: (control) => control.enqueue(new TextEncoder().encode("data: a\n\n")),
    cancel: () => void (cancelled = true),
  });
  for await (const piece of pieces(stream)) {
    assert.equal(piece.text, "a");
    break;
  }
  assert.ok(cancelled);
});

test("an event without its blank line is none", async () => {
  const bytes = new TextEncoder().encode("data: a\n\ndata: b\n");
  const found = [];
  for await (const piece of pieces(streamOf(bytes, 5))) found.push(piece.text);
  assert.deepEqual(found, ["a"]);
});
