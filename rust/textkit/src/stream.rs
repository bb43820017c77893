//! Text from tokens as they come, never half a character.

use std::borrow::Cow;

use crate::tokenizer::Tokenizer;

/// State of one decoded text. The output of all calls, joined, is what
/// decoding the tokens at once gives.
pub struct Decoder {
    skip_special: bool,
    started: bool,
    strip_left: usize,
    /// The start of a character whose rest has not come: at most 3 bytes.
    pending: Vec<u8>,
}

impl Decoder {
    pub fn new(tokenizer: &Tokenizer, skip_special: bool) -> Self {
        Self {
            skip_special,
            started: false,
            strip_left: tokenizer.strip_left(),
            pending: Vec::new(),
        }
    }

    /// Appends to `out` the characters that are complete with this token.
    pub fn push(&mut self, tokenizer: &Tokenizer, id: i32, out: &mut String) {
        if self.skip_special && tokenizer.is_special(id) {
            return;
        }
        let piece = if self.started {
            Cow::Borrowed(tokenizer.piece(id))
        } else {
            tokenizer.first_piece(id)
        };
        self.started = true;
        let mut bytes: &[u8] = &piece;
        while self.strip_left > 0 && !bytes.is_empty() {
            if bytes[0] != b' ' {
                self.strip_left = 0;
                break;
            }
            bytes = &bytes[1..];
            self.strip_left -= 1;
        }
        self.pending.extend_from_slice(bytes);
        let used = append_complete(&self.pending, out);
        self.pending.drain(..used);
    }

    /// Appends what is left, as U+FFFD, and starts a new text.
    pub fn flush(&mut self, tokenizer: &Tokenizer, out: &mut String) {
        out.push_str(&String::from_utf8_lossy(&self.pending));
        *self = Self::new(tokenizer, self.skip_special);
    }
}

/// Appends the decided part of `bytes` and returns its length: all but the
/// start of a character at the end. Bytes that can start no character become
/// U+FFFD, grouped as `String::from_utf8_lossy` groups them.
fn append_complete(bytes: &[u8], out: &mut String) -> usize {
    let mut rest = bytes;
    loop {
        let error = match std::str::from_utf8(rest) {
            Ok(text) => {
                out.push_str(text);
                return bytes.len();
            }
            Err(error) => error,
        };
        let (good, bad) = rest.split_at(error.valid_up_to());
        out.push_str(&String::from_utf8_lossy(good));
        let Some(length) = error.error_len() else {
            return bytes.len() - bad.len();
        };
        out.push(char::REPLACEMENT_CHARACTER);
        rest = &bad[length..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(bytes: &[u8], cut: usize) -> String {
        let mut out = String::new();
        let mut pending = Vec::new();
        for part in [&bytes[..cut], &bytes[cut..]] {
            pending.extend_from_slice(part);
            let used = append_complete(&pending, &mut out);
            pending.drain(..used);
            assert!(pending.len() < 4);
        }
        out + &String::from_utf8_lossy(&pending)
    }

    #[test]
    fn any_cut_gives_what_the_whole_gives() {
        let cases: [&[u8]; 6] = [
            "aé€𝄞".as_bytes(),
            b"\xF0\x9F\x98",
            b"\xE4\xBD\xE4\xBD\xA0",
            b"\xFFa\x80\x80",
            b"\xED\xA0\x80x",
            b"\xF0\x80\x80",
        ];
        for bytes in cases {
            let whole = String::from_utf8_lossy(bytes);
            for cut in 0..=bytes.len() {
                assert_eq!(stream(bytes, cut), whole, "{bytes:x?} at {cut}");
            }
        }
    }
}
