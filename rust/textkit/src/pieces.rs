//! The bytes each token stands for, and what a decoder does at the start.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::Value;

use crate::error::{Error, Result};

/// The 256 characters that byte-level vocabularies write bytes with.
/// Source: encoder.py of the GPT-2 release (`bytes_to_unicode`).
pub static CHAR_OF_BYTE: LazyLock<[char; 256]> = LazyLock::new(|| {
    let printable =
        |b: u8| matches!(b, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    let mut next = 256u32;
    std::array::from_fn(|byte| {
        let code = if printable(byte as u8) {
            byte as u32
        } else {
            next += 1;
            next - 1
        };
        char::from_u32(code).expect("below 512")
    })
});

static BYTE_OF_CHAR: LazyLock<HashMap<char, u8>> =
    LazyLock::new(|| CHAR_OF_BYTE.iter().copied().zip(0..=255u8).collect());

/// The bytes a byte-level token stands for; text outside the 256 characters
/// stands for itself.
pub fn byte_level_bytes(token: &str) -> Vec<u8> {
    token
        .chars()
        .map(|c| BYTE_OF_CHAR.get(&c).copied())
        .collect::<Option<Vec<u8>>>()
        .unwrap_or_else(|| token.as_bytes().to_vec())
}

/// The byte of a token such as `<0x0A>`.
pub fn fallback_byte(token: &str) -> Option<u8> {
    let hex = token.strip_prefix("<0x")?.strip_suffix('>')?;
    let digits = hex.len() == 2 && hex.bytes().all(|b| b.is_ascii_hexdigit());
    digits.then(|| u8::from_str_radix(hex, 16).ok()).flatten()
}

enum Step {
    Replace(String, String),
    ByteFallback,
    ByteLevel,
    Metaspace(String),
}

/// How token strings turn into bytes, read from the `decoder` part of a
/// tokenizer.json.
#[derive(Default)]
pub struct PieceRule {
    steps: Vec<Step>,
    /// Spaces dropped at the start of a decoded text.
    pub strip_left: usize,
    /// Characters the very first token of a text loses (Metaspace).
    pub first_drops: Option<String>,
}

impl PieceRule {
    /// The rule of a decoder description.
    /// Errors: Unsupported names the decoder whose output cannot be made
    /// token by token.
    pub fn from_decoder(decoder: &Value) -> Result<Self> {
        let mut rule = Self::default();
        rule.add(decoder, &mut false)?;
        Ok(rule)
    }

    fn add(&mut self, decoder: &Value, fused: &mut bool) -> Result<()> {
        let kind = decoder["type"].as_str().unwrap_or("none");
        let refuse = |why: &str| {
            Err(Error::unsupported(format!(
                "tokenizer.json: decoder {kind} {why}"
            )))
        };
        match kind {
            "Sequence" => {
                for part in decoder["decoders"].as_array().into_iter().flatten()
                {
                    self.add(part, fused)?;
                }
            }
            "ByteLevel" => self.steps.push(Step::ByteLevel),
            "ByteFallback" => self.steps.push(Step::ByteFallback),
            "Fuse" => *fused = true,
            "Replace" => {
                let from = decoder["pattern"]["String"].as_str();
                let to = decoder["content"].as_str();
                match (from, to) {
                    (Some(from), Some(to)) if !*fused => {
                        self.steps.push(Step::Replace(from.into(), to.into()))
                    }
                    _ => return refuse("is not a plain replacement of text"),
                }
            }
            "Metaspace" => {
                let mark = decoder["replacement"].as_str().unwrap_or("▁");
                if decoder["prepend_scheme"].as_str() != Some("never") {
                    self.first_drops = Some(mark.into());
                }
                self.steps.push(Step::Metaspace(mark.into()));
            }
            "Strip" => {
                let stop = decoder["stop"].as_u64();
                if !*fused
                    || stop != Some(0)
                    || decoder["content"].as_str() != Some(" ")
                {
                    return refuse("strips more than spaces at the start");
                }
                self.strip_left =
                    decoder["start"].as_u64().unwrap_or(0) as usize;
            }
            _ => return refuse("is not one a language model uses"),
        }
        Ok(())
    }

    /// The bytes of a token string.
    pub fn bytes(&self, token: &str) -> Vec<u8> {
        let mut text = token.to_owned();
        for step in &self.steps {
            match step {
                Step::Replace(from, to) => text = text.replace(from, to),
                Step::Metaspace(mark) => text = text.replace(mark, " "),
                Step::ByteLevel => return byte_level_bytes(&text),
                Step::ByteFallback => {
                    if let Some(byte) = fallback_byte(&text) {
                        return vec![byte];
                    }
                }
            }
        }
        text.into_bytes()
    }
}

/// The bytes of all tokens, id by id, in one block of memory.
#[derive(Default)]
pub struct Pieces {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Pieces {
    pub fn push(&mut self, piece: &[u8]) {
        self.bytes.extend_from_slice(piece);
        self.ends.push(self.bytes.len());
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Bytes of the longest, at least 1.
    pub fn longest(&self) -> usize {
        let mut start = 0;
        let lengths = self
            .ends
            .iter()
            .map(|&end| end - std::mem::replace(&mut start, end));
        lengths.max().unwrap_or(0).max(1)
    }

    /// The bytes of a token; none for an id outside the vocabulary.
    pub fn get(&self, id: i32) -> &[u8] {
        let Ok(index) = usize::try_from(id) else {
            return &[];
        };
        let Some(&end) = self.ends.get(index) else {
            return &[];
        };
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.bytes[start..end]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_level_characters_name_all_bytes() {
        let mut seen: Vec<u8> = BYTE_OF_CHAR.values().copied().collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..=255).collect::<Vec<u8>>());
        assert_eq!(byte_level_bytes("ĠaĊ"), b" a\n");
        assert_eq!(byte_level_bytes("<｜end｜>"), "<｜end｜>".as_bytes());
    }

    #[test]
    fn only_two_hex_digits_make_a_fallback_byte() {
        assert_eq!(fallback_byte("<0x0A>"), Some(10));
        assert_eq!(fallback_byte("<0xA>"), None);
        assert_eq!(fallback_byte("<0x+1>"), None);
        assert_eq!(fallback_byte("0x0A"), None);
    }

    #[test]
    fn a_decoder_with_memory_is_refused_by_name() {
        let ctc = serde_json::json!({"type": "CTC"});
        let Err(error) = PieceRule::from_decoder(&ctc) else {
            panic!("CTC was accepted");
        };
        assert!(error.message.contains("CTC"), "{}", error.message);
    }
}
