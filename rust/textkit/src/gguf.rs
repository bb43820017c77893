//! Tokenizers from the vocabulary arrays of a GGUF file.
//! Source: the GGUF specification, section "Tokenizer"; token types are
//! those of llama.cpp's `llama_token_type`.

use std::collections::HashSet;

use ahash::AHashMap;
use serde_json::{json, Value};
use tokenizers::models::bpe::BPE;
use tokenizers::{
    AddedToken, NormalizerWrapper, PreTokenizerWrapper,
    Tokenizer as HfTokenizer,
};

use crate::error::{Error, Result};
use crate::pieces::{byte_level_bytes, fallback_byte, Pieces};
use crate::pretokenizers::pre_tokenizer;
use crate::tokenizer::{SpecialIds, Tokenizer};

const NORMAL: i32 = 1;
const UNKNOWN: i32 = 2;
const CONTROL: i32 = 3;
const USER_DEFINED: i32 = 4;
const BYTE: i32 = 6;

/// What stands for a space in SentencePiece vocabularies.
const SPACE: char = '▁';

/// The arrays of a GGUF file, as they are.
pub struct Vocab<'a> {
    pub tokens: Vec<&'a str>,
    pub merges: Vec<&'a str>,
    pub scores: &'a [f32],
    pub types: &'a [i32],
    pub model: &'a str,
    pub pre: &'a str,
    pub add_space_prefix: bool,
    pub special: SpecialIds,
}

impl Vocab<'_> {
    fn kind(&self, id: usize) -> i32 {
        self.types.get(id).copied().unwrap_or(NORMAL)
    }

    fn check(&self) -> Result<()> {
        let count = self.tokens.len();
        if count == 0 {
            return Err(Error::corrupt("GGUF: the vocabulary is empty"));
        }
        if !self.types.is_empty() && self.types.len() != count {
            return Err(Error::corrupt(format!(
                "GGUF: {} token types for {count} tokens",
                self.types.len()
            )));
        }
        self.special.check(count)
    }

    /// The vocabulary as a map; of equal tokens the first one counts.
    fn ids(&self) -> AHashMap<String, u32> {
        let mut ids = AHashMap::with_capacity(self.tokens.len());
        for (id, token) in self.tokens.iter().enumerate() {
            ids.entry((*token).to_owned()).or_insert(id as u32);
        }
        ids
    }

    /// Tokens that are looked for in text before the model sees it. Control
    /// tokens are special; user-defined ones always match.
    fn added_tokens(&self) -> Vec<AddedToken> {
        let mut seen = HashSet::new();
        self.tokens
            .iter()
            .enumerate()
            .filter(|(_, token)| !token.is_empty() && seen.insert(**token))
            .filter_map(|(id, token)| match self.kind(id) {
                CONTROL | UNKNOWN => Some(AddedToken::from(*token, true)),
                USER_DEFINED => {
                    Some(AddedToken::from(*token, false).normalized(false))
                }
                _ => None,
            })
            .collect()
    }

    fn specials(&self) -> Vec<bool> {
        (0..self.tokens.len())
            .map(|id| matches!(self.kind(id), CONTROL | UNKNOWN))
            .collect()
    }
}

/// Builds the tokenizer of a GGUF vocabulary.
/// Errors: Corrupt for arrays that contradict each other, Unsupported for an
/// unknown model or pre-tokenizer name.
pub fn tokenizer(vocab: &Vocab) -> Result<Tokenizer> {
    vocab.check()?;
    match vocab.model {
        "gpt2" => byte_level(vocab),
        "llama" => sentence_piece(vocab),
        other => Err(Error::unsupported(format!(
            "GGUF: tokenizer.ggml.model = '{other}' (known: gpt2, llama)"
        ))),
    }
}

fn parse<T: serde::de::DeserializeOwned>(value: Value) -> Result<T> {
    serde_json::from_value(value)
        .map_err(|e| Error::internal(format!("built-in tokenizer part: {e}")))
}

fn hf_error(what: &str) -> impl Fn(tokenizers::Error) -> Error + '_ {
    move |e| Error::corrupt(format!("GGUF: {what}: {e}"))
}

fn byte_level(vocab: &Vocab) -> Result<Tokenizer> {
    let table = pre_tokenizer(vocab.pre)?;
    let merges = vocab
        .merges
        .iter()
        .map(|merge| match merge.split_once(' ') {
            Some((l, r)) if !l.is_empty() && !r.is_empty() => {
                Ok((l.to_owned(), r.to_owned()))
            }
            _ => Err(Error::corrupt(format!(
                "GGUF: merge '{merge}' is not two tokens"
            ))),
        })
        .collect::<Result<Vec<_>>>()?;
    let bpe = BPE::builder()
        .vocab_and_merges(vocab.ids(), merges)
        .ignore_merges(table.ignore_merges)
        .build()
        .map_err(hf_error("merges do not fit the vocabulary"))?;
    let mut hf = HfTokenizer::new(bpe);
    if let Some(normalizer) = table.normalizer {
        hf.with_normalizer(Some(parse::<NormalizerWrapper>(normalizer)?))
            .map_err(hf_error("normalizer"))?;
    }
    hf.with_pre_tokenizer(Some(parse::<PreTokenizerWrapper>(
        table.pre_tokenizer,
    )?));
    finish(hf, vocab, 0, |id, token| match vocab.kind(id) {
        CONTROL | UNKNOWN | USER_DEFINED => token.as_bytes().to_vec(),
        _ => byte_level_bytes(token),
    })
}

fn sentence_piece(vocab: &Vocab) -> Result<Tokenizer> {
    if vocab.scores.len() != vocab.tokens.len() {
        return Err(Error::corrupt(format!(
            "GGUF: {} scores for {} tokens",
            vocab.scores.len(),
            vocab.tokens.len()
        )));
    }
    let ids = vocab.ids();
    let merges = merges_from_scores(vocab, &ids)?;
    let mut builder = BPE::builder()
        .vocab_and_merges(ids, merges)
        .fuse_unk(true)
        .byte_fallback(true);
    if let Some(unk) = vocab.special.unk() {
        builder = builder.unk_token(vocab.tokens[unk].to_owned());
    }
    let bpe = builder.build().map_err(hf_error("vocabulary"))?;
    let mut hf = HfTokenizer::new(bpe);
    let space = SPACE.to_string();
    let mut parts = Vec::new();
    if vocab.add_space_prefix {
        parts.push(json!({"type": "Prepend", "prepend": space}));
    }
    parts.push(json!({"type": "Replace", "pattern": {"String": " "},
                      "content": space}));
    let normalizer = json!({"type": "Sequence", "normalizers": parts});
    hf.with_normalizer(Some(parse::<NormalizerWrapper>(normalizer)?))
        .map_err(hf_error("normalizer"))?;
    let strip_left = usize::from(vocab.add_space_prefix);
    finish(hf, vocab, strip_left, |id, token| match vocab.kind(id) {
        BYTE => match fallback_byte(token) {
            Some(byte) => vec![byte],
            None => token.as_bytes().to_vec(),
        },
        _ => token.replace(SPACE, " ").into_bytes(),
    })
}

/// SentencePiece joins the pair whose joint piece scores highest, so the
/// pieces in order of score, each split in all ways into two pieces, are the
/// merges. Ties are ordered as transformers' converter orders them.
/// Only ordinary pieces take part: text must not join into a control token.
fn merges_from_scores(
    vocab: &Vocab,
    ids: &AHashMap<String, u32>,
) -> Result<Vec<(String, String)>> {
    struct Merge<'a> {
        left: &'a str,
        right: &'a str,
        score: f32,
        lengths: (usize, usize),
    }
    let id_of = |piece: &str| {
        let id = *ids.get(piece)?;
        (vocab.kind(id as usize) == NORMAL).then_some(id)
    };
    let mut merges = Vec::new();
    for (id, token) in vocab.tokens.iter().enumerate() {
        if id_of(token) != Some(id as u32) {
            continue;
        }
        let score = vocab.scores[id];
        if score.is_nan() {
            return Err(Error::corrupt(format!(
                "GGUF: the score of token {id} is not a number"
            )));
        }
        let mut splits: Vec<_> = token
            .char_indices()
            .skip(1)
            .enumerate()
            .filter_map(|(chars, (at, _))| {
                let (left, right) = token.split_at(at);
                Some(((id_of(left)?, id_of(right)?), chars + 1, at))
            })
            .collect();
        splits.sort_by_key(|(pair, _, _)| *pair);
        let length = token.chars().count();
        merges.extend(splits.into_iter().map(|(_, chars, at)| Merge {
            left: &token[..at],
            right: &token[at..],
            score,
            lengths: (chars, length - chars),
        }));
    }
    merges.sort_by(|a, b| {
        b.score
            .total_cmp(&a.score)
            .then_with(|| b.lengths.cmp(&a.lengths))
    });
    Ok(merges
        .into_iter()
        .map(|m| (m.left.to_owned(), m.right.to_owned()))
        .collect())
}

fn finish(
    mut hf: HfTokenizer,
    vocab: &Vocab,
    strip_left: usize,
    bytes_of: impl Fn(usize, &str) -> Vec<u8>,
) -> Result<Tokenizer> {
    hf.add_tokens(vocab.added_tokens())
        .map_err(hf_error("special tokens"))?;
    let mut pieces = Pieces::default();
    for (id, token) in vocab.tokens.iter().enumerate() {
        pieces.push(&bytes_of(id, token));
    }
    Tokenizer::new(
        hf,
        pieces,
        vocab.specials(),
        strip_left,
        vocab.special.clone(),
    )
}
