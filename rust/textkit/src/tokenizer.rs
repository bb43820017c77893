//! Text to token ids and back.

use serde_json::Value;
use tokenizers::tokenizer::{
    AddedToken, AddedVocabulary, Encoding, Model, OffsetReferential,
    OffsetType, PreTokenizedString, PreTokenizer, Token,
    Tokenizer as HfTokenizer,
};

use crate::error::{Error, Result};
use crate::pieces::{PieceRule, Pieces};
use crate::stream::Decoder;
use crate::words::{WordCutter, WordEncoder};

/// Ids with a role; -1 where the vocabulary has none.
#[derive(Clone, Debug, PartialEq)]
#[repr(C)]
pub struct SpecialIds {
    pub bos: i32,
    pub eos: i32,
    pub unk: i32,
    pub pad: i32,
    pub eot: i32,
    pub add_bos: bool,
    pub add_eos: bool,
}

impl Default for SpecialIds {
    fn default() -> Self {
        Self {
            bos: -1,
            eos: -1,
            unk: -1,
            pad: -1,
            eot: -1,
            add_bos: false,
            add_eos: false,
        }
    }
}

impl SpecialIds {
    pub fn unk(&self) -> Option<usize> {
        usize::try_from(self.unk).ok()
    }

    pub fn check(&self, tokens: usize) -> Result<()> {
        let ids = [
            ("bos", self.bos),
            ("eos", self.eos),
            ("unknown", self.unk),
            ("padding", self.pad),
            ("eot", self.eot),
        ];
        for (name, id) in ids {
            if id < -1 || id >= tokens as i32 {
                return Err(Error::corrupt(format!(
                    "the {name} token's id {id} is outside the vocabulary of \
                     {tokens} tokens"
                )));
            }
        }
        let wanted = [
            ("bos", self.add_bos, self.bos),
            ("eos", self.add_eos, self.eos),
        ];
        for (name, add, id) in wanted {
            if add && id < 0 {
                return Err(Error::corrupt(format!(
                    "add_{name}_token is set but there is no {name} token"
                )));
            }
        }
        Ok(())
    }
}

/// A tokenizer. Thread: all methods are safe from any thread at once.
pub struct Tokenizer {
    hf: HfTokenizer,
    /// The added tokens with special ones left out of matching.
    plain: AddedVocabulary,
    pieces: Pieces,
    is_special: Vec<bool>,
    strip_left: usize,
    first_drops: Option<String>,
    special: SpecialIds,
    /// What a text begins and ends with when special tokens are asked for.
    begins: Vec<i32>,
    ends: Vec<i32>,
    /// None: text is cut the general way.
    cutter: Option<WordCutter>,
    /// Bytes that one id stands for at most.
    longest_piece: usize,
}

impl Tokenizer {
    pub fn new(
        hf: HfTokenizer,
        pieces: Pieces,
        is_special: Vec<bool>,
        strip_left: usize,
        special: SpecialIds,
    ) -> Result<Self> {
        let mut plain = hf.get_added_vocabulary().clone();
        plain.set_encode_special_tokens(true);
        let only =
            |wanted: bool, id: i32| wanted.then_some(id).into_iter().collect();
        Ok(Self {
            cutter: WordCutter::of(&hf)?,
            hf,
            longest_piece: pieces.longest(),
            plain,
            pieces,
            is_special,
            strip_left,
            first_drops: None,
            begins: only(special.add_bos, special.bos),
            ends: only(special.add_eos, special.eos),
            special,
        })
    }

    /// Reads a tokenizer.json and, for the roles of special tokens, the
    /// tokenizer_config.json beside it (may be empty).
    pub fn from_json(json: &[u8], config: &[u8]) -> Result<Self> {
        let parts: Value = serde_json::from_slice(json)
            .map_err(|e| Error::corrupt(format!("tokenizer.json: {e}")))?;
        let rule = PieceRule::from_decoder(&parts["decoder"])?;
        drop(parts);
        let mut hf = HfTokenizer::from_bytes(json)
            .map_err(|e| Error::corrupt(format!("tokenizer.json: {e}")))?;
        // Cutting and padding belong to training batches.
        hf.with_padding(None);
        hf.with_truncation(None)
            .map_err(|e| Error::internal(format!("truncation: {e}")))?;
        let config = if config.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(config).map_err(|e| {
                Error::corrupt(format!("tokenizer_config.json: {e}"))
            })?
        };
        add_configured_tokens(&mut hf, &config)?;

        let added = hf.get_added_vocabulary();
        let count = hf
            .get_vocab(true)
            .values()
            .max()
            .map_or(0, |id| *id as usize + 1);
        if count == 0 {
            return Err(Error::corrupt(
                "tokenizer.json: the vocabulary is empty",
            ));
        }
        let mut pieces = Pieces::default();
        let mut is_special = vec![false; count];
        for (id, special) in is_special.iter_mut().enumerate() {
            let token = hf.id_to_token(id as u32).unwrap_or_default();
            pieces.push(&rule.bytes(&token));
            *special = added
                .get_added_tokens_decoder()
                .get(&(id as u32))
                .is_some_and(|token| token.special);
        }
        let special = SpecialIds {
            bos: configured_id(&hf, &config, "bos_token"),
            eos: configured_id(&hf, &config, "eos_token"),
            unk: configured_id(&hf, &config, "unk_token"),
            pad: configured_id(&hf, &config, "pad_token"),
            ..SpecialIds::default()
        };
        let (begins, ends) = post_processed(&hf)?;
        let mut made =
            Self::new(hf, pieces, is_special, rule.strip_left, special)?;
        made.first_drops = rule.first_drops;
        made.begins = begins;
        made.ends = ends;
        Ok(made)
    }

    /// The ids of a text. `parse_special` says whether the text of a special
    /// token becomes that token; it must be off for text of users. A text of
    /// more than `most` ids may be read only in part: more than `most` come
    /// then, and nothing but that counts.
    pub fn encode(
        &self,
        text: &str,
        add_special: bool,
        parse_special: bool,
        most: usize,
    ) -> Result<Vec<i32>> {
        let enough = most.saturating_add(1).saturating_mul(self.longest_piece);
        if enough < text.len() {
            let beginning = beginning(text, enough);
            let ids = self.encode_all(beginning, add_special, parse_special)?;
            // Fewer where normalizing shortens a text.
            if ids.len() > most {
                return Ok(ids);
            }
        }
        self.encode_all(text, add_special, parse_special)
    }

    fn encode_all(
        &self,
        text: &str,
        add_special: bool,
        parse_special: bool,
    ) -> Result<Vec<i32>> {
        let added = if parse_special {
            self.hf.get_added_vocabulary()
        } else {
            &self.plain
        };
        let parts = added.extract_and_normalize(self.hf.get_normalizer(), text);
        let mut ids = Vec::with_capacity(text.len() / 3);
        if add_special {
            ids.extend(&self.begins);
        }
        match &self.cutter {
            Some(cutter) => self.encode_words(cutter, &parts, &mut ids)?,
            None => self.encode_parts(parts, &mut ids)?,
        }
        if add_special {
            ids.extend(&self.ends);
        }
        Ok(ids)
    }

    fn encode_words(
        &self,
        cutter: &WordCutter,
        parts: &PreTokenizedString,
        ids: &mut Vec<i32>,
    ) -> Result<()> {
        let mut words = WordEncoder::new(cutter, &self.hf);
        for (text, tokens) in splits(parts) {
            match tokens {
                Some(tokens) => push(tokens, ids),
                None => words.encode(text, ids)?,
            }
        }
        Ok(())
    }

    fn encode_parts(
        &self,
        mut parts: PreTokenizedString,
        ids: &mut Vec<i32>,
    ) -> Result<()> {
        let failed = |e| Error::internal(format!("cannot encode: {e}"));
        if let Some(pre_tokenizer) = self.hf.get_pre_tokenizer() {
            pre_tokenizer.pre_tokenize(&mut parts).map_err(failed)?;
        }
        self.hf
            .get_model()
            .tokenize_in_pretokenized(&mut parts, None)
            .map_err(failed)?;
        for (_, tokens) in splits(&parts) {
            push(tokens.as_deref().unwrap_or_default(), ids);
        }
        Ok(())
    }

    /// The text of ids; bytes that are no UTF-8 become U+FFFD. Ids outside
    /// the vocabulary stand for nothing.
    pub fn decode(&self, ids: &[i32], skip_special: bool) -> String {
        let mut decoder = Decoder::new(self, skip_special);
        let mut text = String::new();
        for id in ids {
            decoder.push(self, *id, &mut text);
        }
        decoder.flush(self, &mut text);
        text
    }

    /// One more than the largest id.
    pub fn vocab_size(&self) -> usize {
        self.pieces.len()
    }

    pub fn is_special(&self, id: i32) -> bool {
        usize::try_from(id)
            .ok()
            .and_then(|id| self.is_special.get(id))
            .copied()
            .unwrap_or(false)
    }

    /// The bytes a token adds to a text, spaces at the start included.
    pub fn piece(&self, id: i32) -> &[u8] {
        self.pieces.get(id)
    }

    /// The bytes of a token that begins a text, before `strip_left`.
    pub(crate) fn first_piece(&self, id: i32) -> std::borrow::Cow<'_, [u8]> {
        let (Some(mark), Ok(index)) = (&self.first_drops, u32::try_from(id))
        else {
            return self.piece(id).into();
        };
        let token = self.hf.id_to_token(index).unwrap_or_default();
        token.replace(mark.as_str(), "").into_bytes().into()
    }

    /// Spaces dropped at the start of a decoded text.
    pub(crate) fn strip_left(&self) -> usize {
        self.strip_left
    }

    pub fn special(&self) -> &SpecialIds {
        &self.special
    }

    /// The id whose token is written so in the vocabulary.
    pub fn token_to_id(&self, token: &str) -> Option<i32> {
        self.hf.token_to_id(token).map(|id| id as i32)
    }
}

/// Up to so many bytes of a text, whole characters.
fn beginning(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len()))
        .rev()
        .find(|&at| text.is_char_boundary(at));
    &text[..end.unwrap_or(0)]
}

fn splits(
    parts: &PreTokenizedString,
) -> impl Iterator<Item = (&str, &Option<Vec<Token>>)> {
    parts
        .get_splits(OffsetReferential::Normalized, OffsetType::None)
        .into_iter()
        .map(|(text, _, tokens)| (text, tokens))
}

fn push(tokens: &[Token], ids: &mut Vec<i32>) {
    ids.extend(tokens.iter().map(|token| token.id as i32));
}

/// What the post-processor of a tokenizer.json puts before and behind a text.
fn post_processed(hf: &HfTokenizer) -> Result<(Vec<i32>, Vec<i32>)> {
    const TEXT: u32 = u32::MAX; // stands for all ids of the text
    let token = Token::new(TEXT, String::new(), (0, 0));
    let encoding = hf
        .post_process(Encoding::from_tokens(vec![token], 0), None, true)
        .map_err(|e| Error::corrupt(format!("tokenizer.json: {e}")))?;
    let sides: Vec<Vec<i32>> = encoding
        .get_ids()
        .split(|id| *id == TEXT)
        .map(|side| side.iter().map(|id| *id as i32).collect())
        .collect();
    <[Vec<i32>; 2]>::try_from(sides)
        .map(|[begins, ends]| (begins, ends))
        .map_err(|_| {
            Error::unsupported(
                "tokenizer.json: a post-processor that does not keep the text",
            )
        })
}

/// A token of the configuration: a string or an object with `content`.
fn token_text(value: &Value) -> Option<&str> {
    value.as_str().or_else(|| value["content"].as_str())
}

/// The id of a token with a role; configurations name tokens that a
/// vocabulary does not have, which then have no role.
fn configured_id(hf: &HfTokenizer, config: &Value, key: &str) -> i32 {
    token_text(&config[key])
        .and_then(|text| hf.token_to_id(text))
        .map_or(-1, |id| id as i32)
}

/// Adds the tokens that only tokenizer_config.json names, as transformers
/// does when it loads the pair.
fn add_configured_tokens(hf: &mut HfTokenizer, config: &Value) -> Result<()> {
    let Some(tokens) = config["added_tokens_decoder"].as_object() else {
        return Ok(());
    };
    let mut missing: Vec<(u32, AddedToken)> = Vec::new();
    for (id, token) in tokens {
        let content = token["content"].as_str().unwrap_or_default();
        let known = hf.get_added_vocabulary().get_vocab().get(content);
        if known.is_some() || content.is_empty() {
            continue;
        }
        let id = id.parse().map_err(|_| {
            Error::corrupt(format!(
                "tokenizer_config.json: added token id '{id}'"
            ))
        })?;
        let flag = |key: &str| token[key].as_bool().unwrap_or(false);
        missing.push((
            id,
            AddedToken::from(content, flag("special"))
                .normalized(flag("normalized"))
                .lstrip(flag("lstrip"))
                .rstrip(flag("rstrip"))
                .single_word(flag("single_word")),
        ));
    }
    missing.sort_by_key(|(id, _)| *id);
    for (id, token) in missing {
        let content = token.content.clone();
        hf.add_tokens([token]).map_err(|e| {
            Error::corrupt(format!("tokenizer_config.json: {content}: {e}"))
        })?;
        if hf.token_to_id(&content) != Some(id) {
            return Err(Error::corrupt(format!(
                "tokenizer_config.json: added token '{content}' has id {id}, \
                 which does not follow the vocabulary of tokenizer.json"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gguf::{tokenizer, Vocab};
    use crate::pieces::CHAR_OF_BYTE;
    use crate::pretokenizers::NAMES;

    const MERGES: [&str; 8] =
        ["Ġ a", "a b", "Ġa b", "1 2", "Ã ©", "Ċ Ċ", "Ġ Ġ", "' s"];

    fn of_gguf(pre: &str) -> Tokenizer {
        let bytes = CHAR_OF_BYTE.iter().map(char::to_string);
        let merged = MERGES.iter().map(|merge| merge.replace(' ', ""));
        let end = "<|end|>".to_owned();
        let tokens: Vec<String> = bytes.chain(merged).chain([end]).collect();
        let mut types = vec![1; tokens.len()];
        *types.last_mut().unwrap() = 3;
        tokenizer(&Vocab {
            model: "gpt2",
            pre,
            tokens: tokens.iter().map(String::as_str).collect(),
            merges: MERGES.to_vec(),
            scores: &[],
            types: &types,
            add_space_prefix: false,
            special: SpecialIds::default(),
        })
        .unwrap()
    }

    /// What is cut at, and what looks like it.
    fn random_text(state: &mut u64) -> String {
        const PARTS: [&str; 32] = [
            "a", "b", "ab", "é", "Ab", "ÀÉ", "漢字", "ひら", "한국", "1", "2",
            "12", "²", "٣", "½", " ", "  ", "\n", "\r\n", "\t", "\u{a0}",
            "\u{3000}", "'s", "'LL", "!", "...", "/", "🙂", "e\u{301}", "ǅ",
            "\0", "<|end|>",
        ];
        let mut next = |below: usize| {
            *state ^= *state << 13;
            *state ^= *state >> 7;
            *state ^= *state << 17;
            (*state % below as u64) as usize
        };
        (0..next(60)).map(|_| PARTS[next(PARTS.len())]).collect()
    }

    #[test]
    fn words_are_what_the_general_way_gives() {
        let mut state = 88172645463325252;
        for name in NAMES.split(", ") {
            let tokenizer = of_gguf(name);
            let Some(cutter) = &tokenizer.cutter else {
                assert_eq!(name, "falcon"); // cuts what are no characters
                continue;
            };
            for _ in 0..3000 {
                let text = random_text(&mut state);
                let parts = || {
                    tokenizer.hf.get_added_vocabulary().extract_and_normalize(
                        tokenizer.hf.get_normalizer(),
                        &text,
                    )
                };
                let (mut by_words, mut by_parts) = (Vec::new(), Vec::new());
                tokenizer
                    .encode_words(cutter, &parts(), &mut by_words)
                    .unwrap();
                tokenizer.encode_parts(parts(), &mut by_parts).unwrap();
                assert_eq!(by_words, by_parts, "{name}: {text:?}");
            }
        }
    }
}
