//! Ids of text by words, for byte-level vocabularies whose pre-tokenizer only
//! cuts: a few allocations a word less than `PreTokenizedString`, which keeps
//! for each what it was before and where it lay, and each word merged once.

use ahash::AHashMap;
use std::ops::Range;
use tokenizers::models::bpe::BPE;
use tokenizers::models::ModelWrapper;
use tokenizers::pre_tokenizers::split::SplitPattern;
use tokenizers::tokenizer::{Model, SplitDelimiterBehavior};
use tokenizers::utils::SysRegex;
use tokenizers::{PreTokenizerWrapper, Tokenizer as HfTokenizer};

use crate::error::{Error, Result};
use crate::pieces::CHAR_OF_BYTE;

/// Where ByteLevel cuts by itself.
/// Source: encoder.py of the GPT-2 release.
const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

/// One pre-tokenizer: each match is a word, and so is what lies between two.
enum Cut {
    Matches(SysRegex),
    EachDigit,
    Digits,
}

impl Cut {
    /// Calls `word` with all parts of a text, in order; none is empty.
    fn parts<'t>(
        &self,
        text: &'t str,
        word: &mut dyn FnMut(&'t str) -> Result<()>,
    ) -> Result<()> {
        let mut rest = 0;
        let mut cut_at = |range: Range<usize>| {
            for part in [&text[rest..range.start], &text[range.clone()]] {
                if !part.is_empty() {
                    word(part)?;
                }
            }
            rest = range.end;
            Ok(())
        };
        match self {
            Cut::Matches(regex) => {
                for (start, end) in regex.find_iter(text) {
                    cut_at(start..end)?;
                }
            }
            Cut::EachDigit => {
                for (at, digit) in text.match_indices(char::is_numeric) {
                    cut_at(at..at + digit.len())?;
                }
            }
            Cut::Digits => {
                let mut run = 0..0;
                for (at, digit) in text.match_indices(char::is_numeric) {
                    if at != run.end {
                        cut_at(run)?;
                        run = at..at;
                    }
                    run.end = at + digit.len();
                }
                cut_at(run)?;
            }
        }
        cut_at(text.len()..text.len())
    }
}

/// Cuts text into the words of a byte-level vocabulary.
pub struct WordCutter {
    cuts: Vec<Cut>,
}

impl WordCutter {
    /// None where a tokenizer does more than to cut, or other models follow.
    pub fn of(hf: &HfTokenizer) -> Result<Option<Self>> {
        let mut cuts = Vec::new();
        let known = match hf.get_pre_tokenizer() {
            Some(all) if merging(hf).is_some() => add_cuts(all, &mut cuts)?,
            _ => Known::No,
        };
        Ok(matches!(known, Known::Last).then_some(Self { cuts }))
    }

    fn words<'t>(
        cuts: &[Cut],
        text: &'t str,
        word: &mut dyn FnMut(&'t str) -> Result<()>,
    ) -> Result<()> {
        match cuts.split_first() {
            None => word(text),
            Some((first, others)) => {
                first.parts(text, &mut |part| Self::words(others, part, word))
            }
        }
    }
}

/// What one is that takes part in cutting.
#[derive(PartialEq)]
enum Known {
    No,
    Cut,
    Last, // ByteLevel: after it bytes are no longer characters
}

/// The model, when it gives a word the same ids each time.
fn merging(hf: &HfTokenizer) -> Option<&BPE> {
    match hf.get_model() {
        ModelWrapper::BPE(bpe) if bpe.dropout.unwrap_or(0.0) == 0.0 => {
            Some(bpe)
        }
        _ => None,
    }
}

fn regex(pattern: &str) -> Result<Cut> {
    SysRegex::new(pattern)
        .map(Cut::Matches)
        .map_err(|e| Error::corrupt(format!("tokenizer.json: {e}")))
}

fn add_cuts(from: &PreTokenizerWrapper, cuts: &mut Vec<Cut>) -> Result<Known> {
    match from {
        PreTokenizerWrapper::Sequence(parts) => {
            let mut known = Known::Cut;
            for part in parts.as_ref() {
                if known == Known::Cut {
                    known = add_cuts(part, cuts)?;
                } else {
                    return Ok(Known::No);
                }
            }
            Ok(known)
        }
        PreTokenizerWrapper::Split(split) => {
            let isolated = split.behavior == SplitDelimiterBehavior::Isolated;
            match &split.pattern {
                SplitPattern::Regex(pattern) if isolated && !split.invert => {
                    cuts.push(regex(pattern)?);
                    Ok(Known::Cut)
                }
                _ => Ok(Known::No),
            }
        }
        PreTokenizerWrapper::Digits(digits) => {
            cuts.push(if digits.individual_digits {
                Cut::EachDigit
            } else {
                Cut::Digits
            });
            Ok(Known::Cut)
        }
        PreTokenizerWrapper::ByteLevel(bytes) if !bytes.add_prefix_space => {
            if bytes.use_regex {
                cuts.push(regex(GPT2)?);
            }
            Ok(Known::Last)
        }
        _ => Ok(Known::No),
    }
}

/// Encodes texts of one call.
pub struct WordEncoder<'a, 't> {
    cutter: &'a WordCutter,
    model: &'a BPE,
    /// Where the ids of words lie that came before.
    seen: AHashMap<&'t str, Range<usize>>,
    letters: String,
}

impl<'a, 't> WordEncoder<'a, 't> {
    /// Requires: the cutter is of this tokenizer.
    pub fn new(cutter: &'a WordCutter, hf: &'a HfTokenizer) -> Self {
        Self {
            cutter,
            model: merging(hf).expect("there is no cutter for others"),
            seen: AHashMap::new(),
            letters: String::new(),
        }
    }

    /// Adds the ids of a text. Requires: `ids` holds what all calls before
    /// have added.
    pub fn encode(&mut self, text: &'t str, ids: &mut Vec<i32>) -> Result<()> {
        WordCutter::words(&self.cutter.cuts, text, &mut |word| {
            if let Some(range) = self.seen.get(word) {
                ids.extend_from_within(range.clone());
                return Ok(());
            }
            let start = ids.len();
            self.letters.clear();
            self.letters.extend(
                word.bytes().map(|byte| CHAR_OF_BYTE[usize::from(byte)]),
            );
            let tokens = self
                .model
                .tokenize(&self.letters)
                .map_err(|e| Error::internal(format!("cannot encode: {e}")))?;
            ids.extend(tokens.iter().map(|token| token.id as i32));
            self.seen.insert(word, start..ids.len());
            Ok(())
        })
    }
}
