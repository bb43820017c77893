/* Tokenizers, chat templates and models from the hub behind a C ABI.
 *
 * 1. Handles (tk_tokenizer, tk_template, tk_stream, tk_hub_models) are opaque.
 *    The function that makes one gives it to the caller, who frees it once
 *    with the _free function of its type; freeing NULL does nothing. A stream
 *    keeps what it needs of its tokenizer, so they may be freed in any order.
 * 2. Texts and arrays go in as pointer and length and are only read during
 *    the call. The pointer may be NULL when the length is 0. Texts are UTF-8
 *    unless stated, need no NUL at the end and may contain NUL.
 * 3. Texts and ids that come out as tk_buffer or tk_ids belong to the caller,
 *    who frees them with tk_buffer_free or tk_ids_free. Those that come out
 *    as tk_view belong to the handle they came from; each function says for
 *    how long they are good.
 * 4. Functions that can fail return a tk_code. When it is not TK_OK, *error
 *    holds a message in words, which the caller frees; nothing else is
 *    written. When it is TK_OK, *error is not touched. No output pointer may
 *    be NULL.
 * 5. Nothing throws or unwinds through this interface: a panic inside becomes
 *    TK_INTERNAL.
 * 6. Threads: a tk_tokenizer or tk_template may be used by many threads at
 *    once, except for freeing it. A tk_stream is for one thread at a time.
 *    The functions of the hub may be called from any thread.
 */
#ifndef AFTERGLOW_TEXTKIT_H_
#define AFTERGLOW_TEXTKIT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tk_tokenizer tk_tokenizer;
typedef struct tk_template tk_template;
typedef struct tk_stream tk_stream;
typedef struct tk_hub_models tk_hub_models;

typedef int32_t tk_code;
enum {
  TK_OK = 0,
  TK_INVALID_ARGUMENT = 1,
  TK_UNSUPPORTED = 2,
  TK_CORRUPT = 3,
  TK_INTERNAL = 4,
  TK_NOT_FOUND = 5,
  TK_PERMISSION = 6,
  TK_IO = 7,
  TK_NO_SPACE = 8,
  TK_UNAVAILABLE = 9,
  TK_CANCELLED = 10
};

typedef struct tk_view {
  const char* data;
  size_t size;
} tk_view;

typedef struct tk_buffer {
  char* data;
  size_t size;
  size_t capacity; /* for tk_buffer_free */
} tk_buffer;

typedef struct tk_ids {
  int32_t* data;
  size_t size;
  size_t capacity; /* for tk_ids_free */
} tk_ids;

/* Ids with a role, -1 where there is none. add_bos and add_eos say what
 * add_special adds for a GGUF vocabulary; a tokenizer.json says so itself. */
typedef struct tk_special_ids {
  int32_t bos;
  int32_t eos;
  int32_t unk;
  int32_t pad;
  int32_t eot;
  bool add_bos;
  bool add_eos;
} tk_special_ids;

/* The tokenizer.ggml.* arrays of a GGUF file. types may be empty (all
 * normal); merges are needed for model "gpt2", scores for "llama". */
typedef struct tk_gguf_vocab {
  const tk_view* tokens;
  size_t token_count;
  const tk_view* merges;
  size_t merge_count;
  const float* scores;
  size_t score_count;
  const int32_t* types;
  size_t type_count;
  tk_view model; /* "gpt2" or "llama" */
  tk_view pre;   /* the pre-tokenizer's name, for "gpt2" */
  bool add_space_prefix;
  tk_special_ids special;
} tk_gguf_vocab;

void tk_buffer_free(tk_buffer buffer);
void tk_ids_free(tk_ids ids);

/* Makes a tokenizer of a tokenizer.json and the tokenizer_config.json beside
 * it (may be empty). TK_CORRUPT: the JSON is wrong; TK_UNSUPPORTED: its
 * decoder is of a kind that has no streaming form. */
tk_code tk_tokenizer_from_json(
    tk_view tokenizer_json,
    tk_view config_json,
    tk_tokenizer** out,
    tk_buffer* error
);
/* Makes a tokenizer of a GGUF file's arrays. TK_UNSUPPORTED: an unknown model
 * or pre-tokenizer name; TK_CORRUPT: arrays that contradict each other. */
tk_code tk_tokenizer_from_gguf(
    const tk_gguf_vocab* vocab, tk_tokenizer** out, tk_buffer* error
);
void tk_tokenizer_free(tk_tokenizer* tokenizer);

/* The ids of a text. add_special: begin and end it as the model expects.
 * parse_special: the text of a special token becomes that token; off for
 * text that users write. A text of more than `most` ids may be read only in
 * part: more than `most` come then, which count for nothing else.
 * TK_INVALID_ARGUMENT: the text is no UTF-8. */
tk_code tk_tokenizer_encode(
    const tk_tokenizer* tokenizer,
    tk_view text,
    bool add_special,
    bool parse_special,
    size_t most,
    tk_ids* out,
    tk_buffer* error
);
/* The text of ids. Bytes that are no UTF-8 become U+FFFD; an id outside the
 * vocabulary stands for nothing. */
tk_code tk_tokenizer_decode(
    const tk_tokenizer* tokenizer,
    const int32_t* ids,
    size_t count,
    bool skip_special,
    tk_buffer* out,
    tk_buffer* error
);
/* One more than the largest id. */
size_t tk_tokenizer_vocab_size(const tk_tokenizer* tokenizer);
bool tk_tokenizer_is_special(const tk_tokenizer* tokenizer, int32_t id);
/* The bytes a token adds to a text; any bytes, not always whole characters.
 * Good as long as the tokenizer; empty for an id outside the vocabulary. */
tk_view tk_tokenizer_piece(const tk_tokenizer* tokenizer, int32_t id);
/* The id of the token written so in the vocabulary, or -1. */
int32_t tk_tokenizer_token_to_id(const tk_tokenizer* tokenizer, tk_view token);
tk_special_ids tk_tokenizer_special(const tk_tokenizer* tokenizer);

/* Begins a text that comes token by token. Never NULL. */
tk_stream* tk_stream_new(const tk_tokenizer* tokenizer, bool skip_special);
void tk_stream_free(tk_stream* stream);
/* The whole characters that this token completes; all pushes and the flush
 * together give what tk_tokenizer_decode gives. Good until the stream's next
 * call. */
tk_view tk_stream_push(tk_stream* stream, int32_t id);
/* What is left when no token follows; then the stream is as new. Good until
 * the stream's next call. */
tk_view tk_stream_flush(tk_stream* stream);

/* A text that a template sees under a name. */
typedef struct tk_variable {
  tk_view name;
  tk_view value;
} tk_variable;

/* Compiles a chat template. variables: special tokens, such as bos_token.
 * TK_INVALID_ARGUMENT: a syntax error, with its line. */
tk_code tk_template_new(
    tk_view source,
    const tk_variable* variables,
    size_t variable_count,
    tk_template** out,
    tk_buffer* error
);
void tk_template_free(tk_template* chat_template);
/* Renders a conversation. messages: a JSON array of objects; tools: a JSON
 * array or empty; kwargs: a JSON object of further variables, or empty.
 * TK_INVALID_ARGUMENT: what the template refused, or could not render. */
tk_code tk_template_render(
    const tk_template* chat_template,
    tk_view messages,
    tk_view tools,
    bool add_generation_prompt,
    tk_view kwargs,
    tk_buffer* out,
    tk_buffer* error
);
/* The template in a tokenizer_config.json: its chat_template, or the one of
 * that name where it is a list. Writes found; the text is empty when it is
 * false. TK_CORRUPT: the JSON is wrong. */
tk_code tk_config_template(
    tk_view config_json,
    tk_view name,
    bool* found,
    tk_buffer* out,
    tk_buffer* error
);

/* Models from the Hugging Face hub, kept in the cache of the Python package
 * huggingface_hub. From the environment: HF_HOME, HF_HUB_CACHE, HF_TOKEN (or
 * its file), HF_ENDPOINT, HF_HUB_OFFLINE, HTTPS_PROXY, SSL_CERT_FILE. */

/* Told several times a second, on the calling thread, from whose stack it must
 * not unwind: the file that comes now, and the bytes of all files so far and
 * in all (0 while not known). file is good during the call. False stops the
 * download. */
typedef bool (*tk_hub_report)(
    void* context, tk_view file, uint64_t done, uint64_t total
);

/* The path of a model's folder or GGUF file. name: organization/name, or
 * organization/name:part, where part is a quantization such as Q4_K_M or a
 * GGUF file's name; revision: a branch, tag or commit. What is here as a whole
 * is not asked for, unless refresh is set; else what is missing is downloaded,
 * and what an earlier call began is continued. With local_only nothing is asked
 * for, and what is not here is TK_NOT_FOUND.
 * TK_INVALID_ARGUMENT: no such name, or one that fits several files (the
 * message lists them); TK_NOT_FOUND; TK_PERMISSION: the hub or the disk
 * forbids it; TK_UNAVAILABLE: the network or the hub fails; TK_CORRUPT: other
 * bytes came than the hub's sum says; TK_IO, TK_NO_SPACE; TK_CANCELLED. */
tk_code tk_hub_fetch(
    tk_view name,
    tk_view revision,
    bool refresh,
    bool local_only,
    tk_hub_report report,
    void* context,
    tk_buffer* out,
    tk_buffer* error
);
/* The cache's folder, which need not exist. */
tk_code tk_hub_cache(tk_buffer* out, tk_buffer* error);

/* A model in the cache. Its views are good as long as the list. */
typedef struct tk_hub_model {
  tk_view name; /* what fetches it */
  tk_view path;
  tk_view revision; /* a branch or tag, else a commit */
  tk_view format;   /* "safetensors" or "gguf"; empty when incomplete */
  uint64_t bytes;
  bool complete;
} tk_hub_model;

/* The models in the cache, by name. */
tk_code tk_hub_installed(tk_hub_models** out, tk_buffer* error);
void tk_hub_models_free(tk_hub_models* models);
size_t tk_hub_models_size(const tk_hub_models* models);
/* index must be below the size. */
tk_hub_model tk_hub_models_at(const tk_hub_models* models, size_t index);

#ifdef __cplusplus
}
#endif

#endif /* AFTERGLOW_TEXTKIT_H_ */
