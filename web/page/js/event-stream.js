// Reading `text/event-stream`.

/** @typedef {{kind: "comment" | "data", text: string}} Piece */

/**
 * The comments and the data of a stream, as they arrive.
 * @param {ReadableStream<Uint8Array>} stream
 * @returns {AsyncGenerator<Piece>}
 */
export async function* pieces(stream) {
  const decoder = new TextDecoder();
  const reader = stream.getReader();
  let rest = "";
  /** @type {string[]} */
  let data = [];
  try {
    for (;;) {
      const { value, done } = await reader.read();
      rest += done ? decoder.decode() : decoder.decode(value, { stream: true });
      const lines = rest.split(/\r\n|\n/);
      rest = lines.pop() ?? "";
      for (const line of lines) {
        if (line.startsWith(":")) {
          yield { kind: "comment", text: line.slice(1).trim() };
        } else if (line.startsWith("data:")) {
          data.push(line.slice(5).replace(/^ /, ""));
        } else if (line === "" && data.length > 0) {
          yield { kind: "data", text: data.join("\n") };
          data = [];
        }
      }
      if (done) return;
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}
