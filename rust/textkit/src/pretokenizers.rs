//! The pre-tokenizers behind the names in `tokenizer.ggml.pre`.
//!
//! Each entry is what the tokenizer.json of the named family holds, so that
//! ids equal those of the crate `tokenizers` on that file. A name that is not
//! listed is an error: guessing would change ids silently.

use serde_json::{json, Value};

use crate::error::{Error, Result};

pub struct PreTokenizer {
    pub normalizer: Option<Value>,
    pub pre_tokenizer: Value,
    /// A whole word found in the vocabulary is taken without merging.
    pub ignore_merges: bool,
}

const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const GPT4O: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const DEEPSEEK3: &str = r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"##;

fn split(regex: &str) -> Value {
    json!({"type": "Split", "pattern": {"Regex": regex},
           "behavior": "Isolated", "invert": false})
}

fn digits(individual: bool) -> Value {
    json!({"type": "Digits", "individual_digits": individual})
}

fn byte_level(use_regex: bool) -> Value {
    json!({"type": "ByteLevel", "add_prefix_space": false,
           "trim_offsets": true, "use_regex": use_regex})
}

fn sequence(parts: Vec<Value>) -> Value {
    json!({"type": "Sequence", "pretokenizers": parts})
}

fn one_regex(regex: &str) -> Value {
    sequence(vec![split(regex), byte_level(false)])
}

/// The names `pre_tokenizer` knows, for messages.
pub const NAMES: &str = "gpt-2, smollm, starcoder, refact, command-r, \
                         llama-bpe, qwen2, tekken, gpt-4o, falcon, \
                         deepseek-coder, deepseek-v3";

/// What a name in `tokenizer.ggml.pre` means.
/// Errors: Unsupported for a name that is not in the table.
pub fn pre_tokenizer(name: &str) -> Result<PreTokenizer> {
    let nfc = || Some(json!({"type": "NFC"}));
    let (normalizer, pre_tokenizer, ignore_merges) = match name {
        "gpt-2" | "gpt2" => (None, byte_level(true), false),
        "smollm" | "starcoder" | "refact" => {
            (None, sequence(vec![digits(true), byte_level(true)]), false)
        }
        "command-r" => {
            (nfc(), sequence(vec![digits(true), byte_level(true)]), false)
        }
        "llama-bpe" | "llama3" | "llama-v3" => (None, one_regex(LLAMA3), true),
        "qwen2" => (nfc(), one_regex(QWEN2), false),
        "tekken" => (None, one_regex(TEKKEN), true),
        "gpt-4o" => (None, one_regex(GPT4O), false),
        "falcon" => (
            None,
            sequence(vec![
                json!({"type": "Punctuation", "behavior": "Contiguous"}),
                byte_level(true),
                digits(false),
                split("[0-9][0-9][0-9]"),
            ]),
            false,
        ),
        "deepseek-coder" => (
            None,
            sequence(vec![
                split("[\r\n]"),
                split(r"\s?\p{L}+"),
                split(r"\s?\p{P}+"),
                split("[一-龥ࠀ-一가-퟿]+"),
                digits(true),
                byte_level(false),
            ]),
            false,
        ),
        "deepseek-v3" => (
            None,
            sequence(vec![
                split(r"\p{N}{1,3}"),
                split("[一-龥぀-ゟ゠-ヿ]+"),
                split(DEEPSEEK3),
                byte_level(false),
            ]),
            false,
        ),
        _ => {
            return Err(Error::unsupported(format!(
                "GGUF: unknown pre-tokenizer tokenizer.ggml.pre = '{name}' \
                 (known: {NAMES}); use the model's tokenizer.json"
            )))
        }
    };
    Ok(PreTokenizer {
        normalizer,
        pre_tokenizer,
        ignore_merges,
    })
}
