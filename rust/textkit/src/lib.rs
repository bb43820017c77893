//! Tokenizers and chat templates behind the C ABI of textkit.h.

pub mod error;
#[allow(clippy::missing_safety_doc)]
pub mod ffi;
pub mod gguf;
mod json;
mod pieces;
mod pretokenizers;
mod pycompat;
mod source;
pub mod stream;
pub mod template;
pub mod tokenizer;
