//! Tokenizers, chat templates and models from the hub behind the C ABI of
//! textkit.h.

pub mod error;
#[allow(clippy::missing_safety_doc)]
pub mod ffi;
#[allow(clippy::missing_safety_doc)]
pub mod ffi_hub;
pub mod gguf;
pub mod hub;
mod json;
mod pieces;
mod pretokenizers;
mod pycompat;
mod source;
pub mod stream;
pub mod template;
pub mod tokenizer;
mod words;
