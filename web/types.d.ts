// What the server sends, and what the page keeps. Read by the type checker
// alone; see docs/http-api.md.

interface Timings {
  cache_n: number;
  cache_ram_n: number;
  cache_disk_n: number;
  cache_store: boolean;
  restore_ms: number;
  queue_ms: number;
  prompt_n: number;
  prompt_ms: number;
  predicted_n: number;
  predicted_ms: number;
  predicted_per_second: number;
}

interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  prompt_tokens_details?: { cached_tokens?: number };
}

interface ModelInfo {
  id: string;
  meta?: { context_length?: number; backend?: string; quantization?: string };
}

type EntryType = "system" | "user" | "assistant";

/** An entry by itself. */
interface PinnedEntry {
  id: string;
  type: EntryType;
  tokens: number;
  blocks: number;
  hits: number;
  last_use: number;
  pinned: boolean;
  ttl_seconds: number | null;
}

/** An entry beside the others. */
interface CacheEntry extends PinnedEntry {
  ram_blocks: number;
  disk_blocks: number;
  bytes: number;
  /** The place among the entries in the order of their tokens. */
  order: number;
  /** Leading tokens it has in common with the one before in that order. */
  shared_tokens: number;
  /** What it says where branches begin that it is the first in. */
  texts?: { from: number; text: string }[];
}

interface CacheDisk {
  blocks: number;
  bytes: number;
  bytes_of_all_models: number;
  budget_bytes: number | null;
  dirty_blocks: number;
  dirty_bytes: number;
  write_failures: number;
  corrupt_blocks: number;
  index_complete: boolean;
  writing: boolean;
  last_error: string | null;
}

interface CacheReport {
  requests: { running: number; queued: number };
  lookups: number;
  hits: number;
  hit_tokens: number;
  ram: { blocks: number; bytes: number; budget_bytes: number | null };
  disk: CacheDisk | null;
  entry_budget: number | null;
  entries: CacheEntry[];
}

/** Seconds a prompt token takes to compute, and who measured it. */
interface Price {
  seconds: number;
  source: "answer" | "server" | "other";
}

/** Where an answer's prompt came from, and what that took. */
interface Origin {
  ram: number;
  disk: number;
  computed: number;
  restoreMs: number;
  promptMs: number;
  generated: number;
  tokensPerSecond: number;
  price: Price | null;
  /** Which answered; of older conversations not known. */
  model?: string;
}

interface Message {
  role: "user" | "assistant";
  content: string;
  /** Of answers: what the model thought before it answered. */
  reasoning?: string;
  /** Of answers: how it ended. */
  end?: "stop" | "length" | "stopped" | "failed";
  error?: string;
  origin?: Origin;
}

interface Conversation {
  id: string;
  title: string;
  /** Milliseconds since 1970. */
  updated: number;
  /** The system prompt it began with. */
  system: string;
  messages: Message[];
}

type Theme = "system" | "light" | "dark";

/** Null: the server's default. */
interface Settings {
  model: string | null;
  temperature: number | null;
  topP: number | null;
  maxTokens: number | null;
  system: string;
}
