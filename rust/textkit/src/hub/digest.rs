//! The sum by which the hub names a file's bytes.

use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256};

/// Computes what an etag should be: SHA-256 for 64 hex digits, Git's SHA-1
/// (with the size before the bytes) for 40. Other etags say nothing.
pub struct Digest(Option<Context>);

impl Digest {
    pub fn of(etag: &str, size: u64) -> Self {
        let hex = etag.bytes().all(|b| b.is_ascii_hexdigit());
        Self(match etag.len() {
            64 if hex => Some(Context::new(&SHA256)),
            40 if hex => {
                let mut context = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
                context.update(format!("blob {size}\0").as_bytes());
                Some(context)
            }
            _ => None,
        })
    }

    pub fn update(&mut self, bytes: &[u8]) {
        if let Some(context) = &mut self.0 {
            context.update(bytes);
        }
    }

    /// True unless the bytes are others than the etag names.
    pub fn agrees(self, etag: &str) -> bool {
        let Some(context) = self.0 else { return true };
        let hex = context.finish().as_ref().iter().fold(
            String::new(),
            |mut text, byte| {
                use std::fmt::Write;
                let _ = write!(text, "{byte:02x}");
                text
            },
        );
        hex.eq_ignore_ascii_case(etag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agrees(etag: &str, bytes: &[u8]) -> bool {
        let mut digest = Digest::of(etag, bytes.len() as u64);
        for byte in bytes {
            digest.update(&[*byte]);
        }
        digest.agrees(etag)
    }

    #[test]
    fn both_kinds_of_sums_are_those_of_git() {
        // sha256sum and git hash-object of the same four bytes.
        let sha256 = "7d865e959b2466918c9863afca942d0fb89d7c9ac0c99bafc3749504\
                      ded97730";
        let git = "5716ca5987cbf97d6bb54920bea6adde242d87e6";
        for etag in [sha256, git] {
            assert!(agrees(etag, b"bar\n"), "{etag}");
            assert!(!agrees(etag, b"baz\n"), "{etag}");
        }
        assert!(agrees("some-other-kind", b"anything"));
    }
}
