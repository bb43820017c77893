// One question to the model, its answer streamed.

import { ApiError, call } from "./api.js";
import { pieces } from "./event-stream.js";

/**
 * @typedef {{kind: "reading", done: number, total: number} |
 *   {kind: "reasoning", text: string} |
 *   {kind: "text", text: string} |
 *   {kind: "end", reason: "stop" | "length", usage: Usage | null,
 *    timings: Timings | null, model: string}} AnswerPart
 */

/**
 * @param {Conversation} conversation ending with the user's message
 * @param {Settings} settings
 * @returns {Record<string, unknown>}
 */
export function requestBody(conversation, settings) {
  const messages = conversation.messages
    .filter((message) => message.content !== "")
    .map(({ role, content }) => ({ role, content }));
  const system = conversation.system
    ? [{ role: "system", content: conversation.system }]
    : [];
  /** @type {Record<string, unknown>} */
  const body = {
    messages: [...system, ...messages],
    stream: true,
    stream_options: { include_usage: true },
  };
  if (settings.model !== null) body["model"] = settings.model;
  if (settings.temperature !== null) {
    body["temperature"] = settings.temperature;
  }
  if (settings.topP !== null) body["top_p"] = settings.topP;
  if (settings.maxTokens !== null) {
    body["max_completion_tokens"] = settings.maxTokens;
  }
  return body;
}

/**
 * Streams an answer.
 * Errors: throws ApiError, also where the stream tells of an error or breaks
 * off; AbortError when aborted.
 * @param {Record<string, unknown>} body
 * @param {AbortSignal} signal
 * @returns {AsyncGenerator<AnswerPart>}
 */
export async function* ask(body, signal) {
  const path = "v1/chat/completions";
  const response = await call(path, { method: "POST", body, signal });
  if (!response.body) throw new ApiError("The answer is empty.", 0);
  /** @type {"stop" | "length"} */
  let reason = "stop";
  let usage = null;
  let timings = null;
  let model = "";
  let complete = false;
  for await (const piece of read(response.body, signal)) {
    if (piece.kind === "comment") {
      const progress = /^keepalive (\d+)\/(\d+)$/.exec(piece.text);
      if (progress) {
        const [done, total] = [Number(progress[1]), Number(progress[2])];
        yield { kind: "reading", done, total };
      }
      continue;
    }
    if (piece.text === "[DONE]") {
      complete = true;
      break;
    }
    const event = JSON.parse(piece.text);
    if (event.error) throw new ApiError(event.error.message, response.status);
    const choice = event.choices?.[0];
    if (choice?.delta?.reasoning) {
      yield { kind: "reasoning", text: choice.delta.reasoning };
    }
    if (choice?.delta?.content) {
      yield { kind: "text", text: choice.delta.content };
    }
    reason = choice?.finish_reason ?? reason;
    usage = event.usage ?? usage;
    timings = event.timings ?? timings;
    model = event.model ?? model;
  }
  if (!complete) throw new ApiError("The answer broke off.", 0);
  yield { kind: "end", reason, usage, timings, model };
}

/**
 * Errors: a connection that breaks is an ApiError.
 * @param {ReadableStream<Uint8Array>} stream
 * @param {AbortSignal} signal
 */
async function* read(stream, signal) {
  try {
    yield* pieces(stream);
  } catch (error) {
    if (signal.aborted) throw error;
    throw new ApiError("The connection broke off.", 0);
  }
}
