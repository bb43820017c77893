//! Names of models on the hub, as people type them.

use crate::error::{Error, Result};

/// `organization/name`, or one file of it: `organization/name:part`, where
/// part is a quantization such as Q4_K_M or a GGUF file's name.
#[derive(Clone, Debug, PartialEq)]
pub struct Name {
    pub repository: String,
    pub part: Option<String>,
}

const LONGEST: usize = 96;

impl Name {
    pub fn parse(text: &str) -> Result<Self> {
        let (repository, part) = match text.split_once(':') {
            Some((repository, part)) => (repository, Some(part)),
            None => (text, None),
        };
        let wrong = |why: &str| {
            Error::invalid(format!(
                "'{text}' cannot be a model's name on the hub: {why}. Such \
                 names look like organization/name, or \
                 organization/name:Q4_K_M for one GGUF file"
            ))
        };
        let Some((organization, name)) = repository.split_once('/') else {
            return Err(wrong("it has no slash"));
        };
        for word in [organization, name] {
            if let Some(why) = fault(word) {
                return Err(wrong(why));
            }
        }
        if repository.len() > LONGEST {
            return Err(wrong("it has more than 96 characters"));
        }
        if part.is_some_and(|part| !is_plain_path(part)) {
            return Err(wrong("what follows the colon is no file name"));
        }
        Ok(Self {
            repository: repository.to_owned(),
            part: part.map(str::to_owned),
        })
    }

    pub fn text(&self) -> String {
        match &self.part {
            Some(part) => format!("{}:{part}", self.repository),
            None => self.repository.clone(),
        }
    }
}

fn fault(word: &str) -> Option<&'static str> {
    let inner = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if word.is_empty() {
        Some("a part of it is empty")
    } else if word.contains('/') {
        Some("it has two slashes")
    } else if !word.chars().all(|c| inner(c) || c == '-' || c == '.') {
        Some("only letters, digits, '-', '_' and '.' may occur")
    } else if !word.starts_with(inner) || !word.ends_with(inner) {
        Some("'-' and '.' may not come first or last")
    } else if word.contains("--") || word.contains("..") {
        Some("'--' and '..' may not occur")
    } else {
        None
    }
}

/// A relative path that stays in its folder, such as `a/b.json`. Names of
/// files come from elsewhere; paths are made of them, and they are shown, so
/// that nothing in them may steer a terminal.
pub fn is_plain_path(path: &str) -> bool {
    !path.contains(|c: char| c == '\\' || c.is_control())
        && path
            .split('/')
            .all(|part| !part.is_empty() && part != "." && part != "..")
}

/// Checks a branch, tag or commit.
pub fn check_revision(revision: &str) -> Result<()> {
    if is_plain_path(revision) && !revision.contains(char::is_whitespace) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "'{revision}' cannot be a revision: it must be a branch, a tag or a \
         commit"
    )))
}

pub fn is_commit(revision: &str) -> bool {
    revision.len() == 40
        && revision
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_an_organization_and_perhaps_a_part() {
        let plain = Name::parse("mlx-community/Qwen3-0.6B-4bit").unwrap();
        assert_eq!(plain.repository, "mlx-community/Qwen3-0.6B-4bit");
        assert_eq!(plain.part, None);
        let part = Name::parse("o/n:Q4_K_M").unwrap();
        assert_eq!(part.part.as_deref(), Some("Q4_K_M"));
        assert_eq!(part.text(), "o/n:Q4_K_M");
        let file = Name::parse("o/n:sub/file.gguf").unwrap();
        assert_eq!(file.part.as_deref(), Some("sub/file.gguf"));
    }

    #[test]
    fn bad_names_are_refused_with_the_reason() {
        let cases = [
            ("gpt2", "no slash"),
            ("/n", "empty"),
            ("o/", "empty"),
            ("o/n/x", "two slashes"),
            ("../n", "first or last"),
            ("o/n.", "first or last"),
            ("o/a--b", "'--'"),
            ("o/a..b", "'..'"),
            ("o/n m", "only letters"),
            ("o/n:", "colon"),
            ("o/n:../../x", "colon"),
            ("o/n:/etc/passwd", "colon"),
        ];
        for (text, reason) in cases {
            let error = Name::parse(text).unwrap_err();
            assert!(error.message.contains(text), "{}", error.message);
            assert!(error.message.contains(reason), "{}", error.message);
        }
        let long = format!("o/{}", "n".repeat(95));
        assert!(Name::parse(&long).is_err());
        assert!(Name::parse(&long[..96]).is_ok());
    }

    #[test]
    fn names_of_files_are_plain() {
        for good in ["a", "a/b c.json", "größe.gguf", ".a"] {
            assert!(is_plain_path(good), "{good}");
        }
        let bad = [
            "",
            "/a",
            "a/",
            "a//b",
            "a/..",
            "./a",
            "a\\b",
            "a\0",
            "a\nb",
            "a\r",
            "\x1b[2J",
            "a\x7f",
            "a\u{9b}2J",
        ];
        for bad in bad {
            assert!(!is_plain_path(bad), "{bad:?}");
        }
    }

    #[test]
    fn revisions_stay_in_their_folder() {
        for good in ["main", "refs/pr/1", "v1.0"] {
            assert!(check_revision(good).is_ok(), "{good}");
        }
        for bad in ["", "..", "a/../b", "/a", "a b", "a\n"] {
            assert!(check_revision(bad).is_err(), "{bad}");
        }
        assert!(is_commit(&"0a".repeat(20)));
        assert!(!is_commit(&"0A".repeat(20)));
        assert!(!is_commit("main"));
    }
}
