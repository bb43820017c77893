//! Chat templates, rendered as transformers renders them.
//! Source: transformers, utils/chat_template_utils.py.

use std::ffi::CString;
use std::fmt;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value;
use minijinja::{
    AutoEscape, Environment, Error as JinjaError, ErrorKind, UndefinedBehavior,
};
use serde_json::{Map, Value as Json};

use crate::error::{Error, Result};
use crate::json::{number, tojson};
use crate::pycompat;
use crate::source::prepare_source;

const NAME: &str = "chat";

/// What a template refused with `raise_exception`.
#[derive(Debug)]
struct Raised(String);

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Raised {}

/// A compiled template. Thread: rendering is safe from many threads.
pub struct ChatTemplate {
    env: Environment<'static>,
    variables: Map<String, Json>,
}

impl ChatTemplate {
    /// Compiles a template. `variables` are texts the template sees under
    /// names such as `bos_token`.
    /// Errors: InvalidArgument names line and reason.
    pub fn new(source: &str, variables: &[(&str, &str)]) -> Result<Self> {
        let mut env = environment();
        env.add_template_owned(NAME, prepare_source(source))
            .map_err(|e| explain("syntax error", &e))?;
        let variables = variables
            .iter()
            .map(|(name, text)| ((*name).to_owned(), Json::from(*text)))
            .collect();
        Ok(Self { env, variables })
    }

    /// The prompt of a conversation. `tools` is a JSON array or empty,
    /// `kwargs` a JSON object or empty; its members win over all others.
    /// Errors: InvalidArgument for JSON of another shape, for what the
    /// template refuses and for what it cannot render.
    pub fn render(
        &self,
        messages: &[u8],
        tools: &[u8],
        add_generation_prompt: bool,
        kwargs: &[u8],
    ) -> Result<String> {
        let mut context = self.variables.clone();
        context.insert("messages".into(), conversation(messages)?.into());
        context.insert("tools".into(), tool_list(tools)?);
        context.insert("documents".into(), Json::Null);
        context.insert(
            "add_generation_prompt".into(),
            add_generation_prompt.into(),
        );
        context.extend(object(kwargs, "template arguments")?);
        let context = value(Json::Object(context));
        self.env
            .get_template(NAME)
            .and_then(|template| template.render(context))
            .map_err(|e| match raised(&e) {
                Some(message) => Error::invalid(message),
                None => explain("cannot render", &e),
            })
    }
}

fn environment() -> Environment<'static> {
    let mut env = Environment::new();
    env.set_syntax(
        SyntaxConfig::builder()
            .trim_blocks(true)
            .lstrip_blocks(true)
            .build()
            .expect("the default delimiters"),
    );
    env.set_undefined_behavior(UndefinedBehavior::Lenient);
    env.set_auto_escape_callback(|_| AutoEscape::None);
    env.set_formatter(|out, _state, value| {
        let written = if value.is_number() {
            out.write_str(&number(value, false))
        } else {
            fmt::Write::write_fmt(out, format_args!("{value}"))
        };
        written.map_err(|_| {
            JinjaError::new(ErrorKind::WriteFailure, "cannot write output")
        })
    });
    pycompat::install(&mut env);
    env.add_filter("tojson", tojson);
    env.add_function("cycler", minijinja_contrib::globals::cycler);
    env.add_function("joiner", minijinja_contrib::globals::joiner);
    env.add_function("raise_exception", |message: Value| {
        let text = message.to_string();
        Err::<Value, _>(
            JinjaError::new(ErrorKind::InvalidOperation, text.clone())
                .with_source(Raised(text)),
        )
    });
    env.add_function("strftime_now", |format: &str| strftime_now(format));
    env
}

/// JSON as the template sees it; the order of members is kept.
fn value(json: Json) -> Value {
    match json {
        Json::Null => Value::from(()),
        Json::Bool(yes) => Value::from(yes),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(integer), _) => Value::from(integer),
            (_, Some(integer)) => Value::from(integer),
            _ => Value::from(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::from(text),
        Json::Array(items) => items.into_iter().map(value).collect(),
        Json::Object(members) => {
            Value::from_pairs(members.into_iter().map(|(k, v)| (k, value(v))))
        }
    }
}

/// `datetime.now().strftime(format)`: local time, the C library's format.
fn strftime_now(format: &str) -> std::result::Result<String, JinjaError> {
    let bad = |why: &str| {
        JinjaError::new(
            ErrorKind::InvalidOperation,
            format!("strftime_now({format:?}): {why}"),
        )
    };
    if format.is_empty() {
        return Ok(String::new());
    }
    let c_format =
        CString::new(format).map_err(|_| bad("NUL in the format"))?;
    let mut text = vec![0u8; 256 + 16 * format.len()];
    // SAFETY: all pointers are to live memory of the stated size, and
    // localtime_r fills `parts` before strftime reads it.
    let length = unsafe {
        let now = libc::time(std::ptr::null_mut());
        let mut parts: libc::tm = std::mem::zeroed();
        if libc::localtime_r(&now, &mut parts).is_null() {
            return Err(bad("no local time"));
        }
        libc::strftime(
            text.as_mut_ptr().cast(),
            text.len(),
            c_format.as_ptr(),
            &parts,
        )
    };
    text.truncate(length);
    String::from_utf8(text).map_err(|_| bad("not UTF-8"))
}

fn raised(error: &JinjaError) -> Option<String> {
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(Raised(message)) = error.downcast_ref() {
            return Some(message.clone());
        }
        next = error.source();
    }
    None
}

fn explain(what: &str, error: &JinjaError) -> Error {
    let line = match error.line() {
        Some(line) => format!(" in line {line}"),
        None => String::new(),
    };
    let detail = match error.detail() {
        Some(detail) => format!(": {detail}"),
        None => String::new(),
    };
    let kind = error.kind();
    Error::invalid(format!("chat template: {what}{line}: {kind}{detail}"))
}

fn object(json: &[u8], what: &str) -> Result<Map<String, Json>> {
    if json.is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_slice(json) {
        Ok(Json::Object(members)) => Ok(members),
        Ok(_) => Err(Error::invalid(format!("{what}: not a JSON object"))),
        Err(e) => Err(Error::invalid(format!("{what}: {e}"))),
    }
}

fn tool_list(json: &[u8]) -> Result<Json> {
    if json.is_empty() {
        return Ok(Json::Null);
    }
    match serde_json::from_slice(json) {
        Ok(tools @ (Json::Array(_) | Json::Null)) => Ok(tools),
        Ok(_) => Err(Error::invalid("tools: not a JSON array")),
        Err(e) => Err(Error::invalid(format!("tools: {e}"))),
    }
}

/// The template in a tokenizer_config.json; of a list the one of that name.
pub fn template_in_config(config: &[u8], name: &str) -> Result<Option<String>> {
    let config: Json = serde_json::from_slice(config)
        .map_err(|e| Error::corrupt(format!("tokenizer_config.json: {e}")))?;
    let field = &config["chat_template"];
    let text = match field {
        Json::Array(named) => named
            .iter()
            .find(|entry| entry["name"] == name)
            .and_then(|entry| entry["template"].as_str()),
        _ => field.as_str(),
    };
    Ok(text.map(str::to_owned))
}

/// Names under which a message's reasoning comes; templates read the first
/// or the second.
const REASONING: [&str; 3] = ["reasoning_content", "thinking", "reasoning"];

/// The messages as `apply_chat_template` hands them to the template: members
/// that are null are gone, reasoning is found under both of its names.
fn conversation(json: &[u8]) -> Result<Vec<Json>> {
    let messages = match serde_json::from_slice(json) {
        Ok(Json::Array(messages)) => messages,
        Ok(_) => return Err(Error::invalid("messages: not a JSON array")),
        Err(e) => return Err(Error::invalid(format!("messages: {e}"))),
    };
    messages
        .into_iter()
        .enumerate()
        .map(|(i, message)| match message {
            Json::Object(members) => Ok(plain_message(members)),
            _ => {
                Err(Error::invalid(format!("messages[{i}]: not a JSON object")))
            }
        })
        .collect()
}

fn plain_message(members: Map<String, Json>) -> Json {
    let members: Map<String, Json> = members
        .into_iter()
        .filter(|(_, value)| !value.is_null())
        .collect();
    let reasoning = REASONING.iter().find_map(|name| members.get(*name));
    let Some(reasoning) = reasoning.cloned() else {
        return Json::Object(members);
    };
    let mut aliased = Map::new();
    aliased.insert("thinking".into(), reasoning.clone());
    aliased.extend(members);
    aliased.insert("reasoning_content".into(), reasoning);
    Json::Object(aliased)
}
