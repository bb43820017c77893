//! The one error type of the crate; `Code` is mirrored in textkit.h.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Code {
    /// The caller's input is wrong: text, arguments, a refused conversation.
    InvalidArgument = 1,
    /// Understood, but not something this crate can do.
    Unsupported = 2,
    /// A description that contradicts itself or does not parse; bytes that
    /// are not those that were promised.
    Corrupt = 3,
    /// A broken promise inside the crate or one of its libraries.
    Internal = 4,
    /// No such model, revision or file.
    NotFound = 5,
    Permission = 6,
    /// A file cannot be read or written.
    Io = 7,
    NoSpace = 8,
    /// The network or the server at its other end fails; may pass.
    Unavailable = 9,
    Cancelled = 10,
}

#[derive(Debug)]
pub struct Error {
    pub code: Code,
    pub message: String,
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidArgument, message)
    }

    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(Code::Unsupported, message)
    }

    pub fn corrupt(message: impl Into<String>) -> Self {
        Self::new(Code::Corrupt, message)
    }

    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Code::Internal, message)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// What the system says, without its number in brackets.
pub fn io_in_words(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_owned(),
        None => text,
    }
}
