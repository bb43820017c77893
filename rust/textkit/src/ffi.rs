//! The C ABI of textkit.h; ownership is stated there.
//!
//! Every entry turns panics into an error or a neutral value, so that nothing
//! unwinds into the caller.

use std::ffi::c_char;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::gguf;
use crate::stream::Decoder;
use crate::template::{template_in_config, ChatTemplate};
use crate::tokenizer::{SpecialIds, Tokenizer};

pub type TkTokenizer = Arc<Tokenizer>;

pub struct TkStream {
    tokenizer: Arc<Tokenizer>,
    decoder: Decoder,
    text: String,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct TkView {
    data: *const c_char,
    size: usize,
}

#[repr(C)]
pub struct TkBuffer {
    data: *mut c_char,
    size: usize,
    capacity: usize,
}

#[repr(C)]
pub struct TkIds {
    data: *mut i32,
    size: usize,
    capacity: usize,
}

#[repr(C)]
pub struct TkVariable {
    name: TkView,
    value: TkView,
}

#[repr(C)]
pub struct TkGgufVocab {
    tokens: *const TkView,
    token_count: usize,
    merges: *const TkView,
    merge_count: usize,
    scores: *const f32,
    score_count: usize,
    types: *const i32,
    type_count: usize,
    model: TkView,
    pre: TkView,
    add_space_prefix: bool,
    special: SpecialIds,
}

impl TkView {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self {
            data: bytes.as_ptr().cast(),
            size: bytes.len(),
        }
    }

    /// SAFETY: data and size must name readable memory that outlives 'a.
    unsafe fn bytes<'a>(self) -> &'a [u8] {
        slice(self.data.cast(), self.size)
    }

    /// SAFETY: as for `bytes`.
    pub(crate) unsafe fn text<'a>(self, what: &str) -> Result<&'a str> {
        std::str::from_utf8(self.bytes()).map_err(|e| {
            Error::invalid(format!(
                "{what} is not valid UTF-8 (byte {})",
                e.valid_up_to()
            ))
        })
    }
}

impl TkBuffer {
    pub(crate) fn give(text: String) -> Self {
        let mut bytes = std::mem::ManuallyDrop::new(text.into_bytes());
        Self {
            data: bytes.as_mut_ptr().cast(),
            size: bytes.len(),
            capacity: bytes.capacity(),
        }
    }
}

/// SAFETY: data must name `count` readable elements that outlive 'a, or
/// count must be 0.
unsafe fn slice<'a, T>(data: *const T, count: usize) -> &'a [T] {
    if data.is_null() || count == 0 {
        &[]
    } else {
        std::slice::from_raw_parts(data, count)
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .map(|s| (*s).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned());
    format!("panic: {}", text.as_deref().unwrap_or("no message"))
}

/// Runs `work` and stores what it gives, or the reason why it gave nothing.
/// SAFETY: out and error must be writable.
pub(crate) unsafe fn guard<T>(
    out: *mut T,
    error: *mut TkBuffer,
    work: impl FnOnce() -> Result<T>,
) -> i32 {
    let result = catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|p| Err(Error::internal(panic_text(&*p))));
    match result {
        Ok(value) => {
            out.write(value);
            0
        }
        Err(e) => {
            error.write(TkBuffer::give(e.message));
            e.code as i32
        }
    }
}

/// Runs `work`; a panic gives `neutral`.
pub(crate) fn quiet<T>(neutral: T, work: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(neutral)
}

/// SAFETY: the handle must come from Box::into_raw, or be null.
pub(crate) unsafe fn free<T>(handle: *mut T) {
    if !handle.is_null() {
        quiet((), || drop(Box::from_raw(handle)));
    }
}

pub(crate) fn boxed<T>(value: T) -> *mut T {
    Box::into_raw(Box::new(value))
}

#[no_mangle]
pub unsafe extern "C" fn tk_buffer_free(buffer: TkBuffer) {
    if !buffer.data.is_null() {
        let data = buffer.data.cast::<u8>();
        drop(Vec::from_raw_parts(data, buffer.size, buffer.capacity));
    }
}

#[no_mangle]
pub unsafe extern "C" fn tk_ids_free(ids: TkIds) {
    if !ids.data.is_null() {
        drop(Vec::from_raw_parts(ids.data, ids.size, ids.capacity));
    }
}

#[no_mangle]
pub unsafe extern "C" fn tk_tokenizer_from_json(
    tokenizer_json: TkView,
    config_json: TkView,
    out: *mut *mut TkTokenizer,
    error: *mut TkBuffer,
) -> i32 {
    guard(out, error, || {
        Tokenizer::from_json(tokenizer_json.bytes(), config_json.bytes())
            .map(|tokenizer| boxed(Arc::new(tokenizer)))
    })
}

#[no_mangle]
pub unsafe extern "C" fn tk_tokenizer_from_gguf(
    vocab: *const TkGgufVocab,
    out: *mut *mut TkTokenizer,
    error: *mut TkBuffer,
) -> i32 {
    guard(out, error, || {
        let vocab = &*vocab;
        let texts = |data, count, what: &str| {
            slice::<TkView>(data, count)
                .iter()
                .enumerate()
                .map(|(i, view)| {
                    view.text("it").map_err(|_| {
                        Error::corrupt(format!(
                            "GGUF: {what} {i} is not valid UTF-8"
                        ))
                    })
                })
                .collect::<Result<Vec<_>>>()
        };
        let vocab = gguf::Vocab {
            tokens: texts(vocab.tokens, vocab.token_count, "token")?,
            merges: texts(vocab.merges, vocab.merge_count, "merge")?,
            scores: slice(vocab.scores, vocab.score_count),
            types: slice(vocab.types, vocab.type_count),
            model: vocab.model.text("tokenizer.ggml.model")?,
            pre: vocab.pre.text("tokenizer.ggml.pre")?,
            add_space_prefix: vocab.add_space_prefix,
            special: vocab.special.clone(),
        };
        gguf::tokenizer(&vocab).map(|made| boxed(Arc::new(made)))
    })
}

#[no_mangle]
pub unsafe extern "C" fn tk_tokenizer_free(tokenizer: *mut TkTokenizer) {
    free(tokenizer);
}

#[no_mangle]
pub unsafe extern "C" fn tk_tokenizer_encode(
    tokenizer: *const TkTokenizer,
    text: TkView,
    add_special: bool,
    parse_special: bool,
    most: usize,
    out: *mut TkIds,
    error: *mut TkBuffer,
) -> i32 {
    guard(out, error, || {
        let ids = (*tokenizer).encode(
            text.text("the text")?,
            add_special,
            parse_special,
            most,
        )?;
        let mut ids = std::mem::ManuallyDrop::new(ids);
        Ok(TkIds {
            data: ids.as_mut_ptr(),
            size: ids.len(),
            capacity: ids.capacity(),
        })
    })
}

#[no_mangle]
pub unsafe extern "C" fn tk_tokenizer_decode(
    tokenizer: *const TkTokenizer,
    ids: *const i32,
    count: usize,
    skip_special: bool,
    out: *mut TkBuffer,
    error: *mut TkBuffer,
) -> i32 {
    guard(out, error, || {
        let text = (*tokenizer).decode(slice(ids, count), skip_special);
        Ok(TkBuffer::give(text))
    })
}

#[no_mangle]
pub unsafe extern "C" fn tk_tokenizer_vocab_size(
    tokenizer: *const TkTokenizer,
) -> usize {
    (*tokenizer).vocab_size()
}

#[no_mangle]
pub unsafe extern "C" fn tk_tokenizer_is_special(
    tokenizer: *const TkTokenizer,
    id: i32,
) -> bool {
    (*tokenizer).is_special(id)
}

#[no_mangle]
pub unsafe extern "C" fn tk_tokenizer_piece(
    tokenizer: *const TkTokenizer,
    id: i32,
) -> TkView {
    quiet(TkView::of(&[]), || TkView::of((*tokenizer).piece(id)))
}

#[no_mangle]
pub unsafe extern "C" fn tk_tokenizer_token_to_id(
    tokenizer: *const TkTokenizer,
    token: TkView,
) -> i32 {
    quiet(-1, || match token.text("the token") {
        Ok(token) => (*tokenizer).token_to_id(token).unwrap_or(-1),
        Err(_) => -1,
    })
}

#[no_mangle]
pub unsafe extern "C" fn tk_tokenizer_special(
    tokenizer: *const TkTokenizer,
) -> SpecialIds {
    (*tokenizer).special().clone()
}

#[no_mangle]
pub unsafe extern "C" fn tk_stream_new(
    tokenizer: *const TkTokenizer,
    skip_special: bool,
) -> *mut TkStream {
    let tokenizer = (*tokenizer).clone();
    boxed(TkStream {
        decoder: Decoder::new(&tokenizer, skip_special),
        tokenizer,
        text: String::new(),
    })
}

#[no_mangle]
pub unsafe extern "C" fn tk_stream_free(stream: *mut TkStream) {
    free(stream);
}

#[no_mangle]
pub unsafe extern "C" fn tk_stream_push(
    stream: *mut TkStream,
    id: i32,
) -> TkView {
    quiet(TkView::of(&[]), || {
        let stream = &mut *stream;
        stream.text.clear();
        stream.decoder.push(&stream.tokenizer, id, &mut stream.text);
        TkView::of(stream.text.as_bytes())
    })
}

#[no_mangle]
pub unsafe extern "C" fn tk_stream_flush(stream: *mut TkStream) -> TkView {
    quiet(TkView::of(&[]), || {
        let stream = &mut *stream;
        stream.text.clear();
        stream.decoder.flush(&stream.tokenizer, &mut stream.text);
        TkView::of(stream.text.as_bytes())
    })
}

#[no_mangle]
pub unsafe extern "C" fn tk_template_new(
    source: TkView,
    variables: *const TkVariable,
    variable_count: usize,
    out: *mut *mut ChatTemplate,
    error: *mut TkBuffer,
) -> i32 {
    guard(out, error, || {
        let source = source.text("the chat template")?;
        let variables = slice(variables, variable_count)
            .iter()
            .map(|v| {
                Ok((v.name.text("a name")?, v.value.text("a special token")?))
            })
            .collect::<Result<Vec<_>>>()?;
        ChatTemplate::new(source, &variables).map(boxed)
    })
}

#[no_mangle]
pub unsafe extern "C" fn tk_config_template(
    config_json: TkView,
    name: TkView,
    found: *mut bool,
    out: *mut TkBuffer,
    error: *mut TkBuffer,
) -> i32 {
    guard(out, error, || {
        let name = name.text("the template's name")?;
        let text = template_in_config(config_json.bytes(), name)?;
        found.write(text.is_some());
        Ok(TkBuffer::give(text.unwrap_or_default()))
    })
}

#[no_mangle]
pub unsafe extern "C" fn tk_template_free(chat_template: *mut ChatTemplate) {
    free(chat_template);
}

#[no_mangle]
pub unsafe extern "C" fn tk_template_render(
    chat_template: *const ChatTemplate,
    messages: TkView,
    tools: TkView,
    add_generation_prompt: bool,
    kwargs: TkView,
    out: *mut TkBuffer,
    error: *mut TkBuffer,
) -> i32 {
    guard(out, error, || {
        (*chat_template)
            .render(
                messages.bytes(),
                tools.bytes(),
                add_generation_prompt,
                kwargs.bytes(),
            )
            .map(TkBuffer::give)
    })
}
