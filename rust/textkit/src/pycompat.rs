//! Methods of Python's strings and lists that templates call and
//! minijinja-contrib lacks or treats in another way, and Jinja's tests.

use minijinja::value::{from_args, Tuple, Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State};
use minijinja_contrib::pycompat::unknown_method_callback;

pub fn install(env: &mut Environment) {
    env.set_unknown_method_callback(method);
    env.add_test("sequence", |v: &Value| {
        matches!(
            v.kind(),
            ValueKind::Seq
                | ValueKind::String
                | ValueKind::Map
                | ValueKind::Undefined
        )
    });
    env.add_test("iterable", |v: &Value| {
        v.kind() == ValueKind::String || v.try_iter().is_ok()
    });
    env.add_test("number", |v: &Value| {
        matches!(v.kind(), ValueKind::Number | ValueKind::Bool)
    });
    env.add_filter("length", length);
    env.add_filter("count", length);
    env.add_filter("int", int);
    env.add_filter("float", float);
}

/// Jinja's filter: a default takes the place of what is no number.
fn int(value: &Value, default: Option<Value>) -> Value {
    let number = match value.kind() {
        ValueKind::Bool => Some(i64::from(value.is_true())),
        ValueKind::Number if value.is_integer() => return value.clone(),
        ValueKind::Number => {
            f64::try_from(value.clone()).ok().map(|f| f as i64)
        }
        ValueKind::String => {
            let text = value.as_str().unwrap_or_default().trim();
            let float = || text.parse::<f64>().ok().map(|f| f as i64);
            text.replace('_', "").parse().ok().or_else(float)
        }
        _ => None,
    };
    match number {
        Some(number) => Value::from(number),
        None => default.unwrap_or_else(|| Value::from(0)),
    }
}

/// Jinja's filter: a default takes the place of what is no number.
fn float(value: &Value, default: Option<Value>) -> Value {
    let number = match value.kind() {
        ValueKind::Bool => Some(f64::from(u8::from(value.is_true()))),
        ValueKind::Number => f64::try_from(value.clone()).ok(),
        ValueKind::String => {
            value.as_str().unwrap_or_default().trim().parse().ok()
        }
        _ => None,
    };
    match number {
        Some(number) => Value::from(number),
        None => default.unwrap_or_else(|| Value::from(0.0)),
    }
}

fn length(value: &Value) -> Result<usize, Error> {
    match value.len() {
        Some(length) => Ok(length),
        None if value.is_undefined() => Ok(0),
        None => Err(Error::new(
            ErrorKind::InvalidOperation,
            format!("object of type {} has no len()", value.kind()),
        )),
    }
}

fn method(
    state: &mut State,
    value: &Value,
    name: &str,
    args: &[Value],
) -> Result<Value, Error> {
    let own = match value.kind() {
        ValueKind::String => {
            string_method(value.as_str().unwrap_or_default(), name, args)?
        }
        ValueKind::Seq if name == "index" => {
            let (wanted,): (&Value,) = from_args(args)?;
            let at = value.try_iter()?.position(|item| item == *wanted);
            Some(at.map(Value::from).ok_or_else(|| not_found("list"))?)
        }
        _ => None,
    };
    match own {
        Some(result) => Ok(result),
        None => unknown_method_callback(state, value, name, args),
    }
}

fn not_found(what: &str) -> Error {
    Error::new(
        ErrorKind::InvalidOperation,
        format!("{what}.index: not found"),
    )
}

fn string_method(
    s: &str,
    name: &str,
    args: &[Value],
) -> Result<Option<Value>, Error> {
    let one = || from_args::<(&str,)>(args).map(|(text,)| text);
    Ok(Some(match name {
        "title" => Value::from(title(s)),
        "removeprefix" => Value::from(s.strip_prefix(one()?).unwrap_or(s)),
        "removesuffix" => Value::from(s.strip_suffix(one()?).unwrap_or(s)),
        "partition" => triple(s, s.split_once(one()?), one()?, false),
        "rpartition" => triple(s, s.rsplit_once(one()?), one()?, true),
        "index" => match s.find(one()?) {
            Some(at) => Value::from(s[..at].chars().count()),
            None => return Err(not_found("str")),
        },
        "rsplit" => {
            let (separator, limit): (Option<&str>, Option<i64>) =
                from_args(args)?;
            Value::from(rsplit(s, separator, limit.unwrap_or(-1)))
        }
        "splitlines" => {
            let (keep,): (Option<bool>,) = from_args(args)?;
            Value::from(split_lines(s, keep.unwrap_or(false)))
        }
        "zfill" => {
            let (width,): (usize,) = from_args(args)?;
            let missing = width.saturating_sub(s.chars().count());
            let sign = s.len() - s.trim_start_matches(['+', '-']).len();
            let (sign, digits) = s.split_at(sign.min(1));
            Value::from(format!("{sign}{}{digits}", "0".repeat(missing)))
        }
        _ => return Ok(None),
    }))
}

/// Each run of letters starts upper and goes on lower.
fn title(s: &str) -> String {
    let mut inside = false;
    let mut out = String::with_capacity(s.len());
    for c in s.chars() {
        if inside {
            out.extend(c.to_lowercase());
        } else {
            out.extend(c.to_uppercase());
        }
        inside = c.is_alphabetic();
    }
    out
}

fn triple(
    s: &str,
    found: Option<(&str, &str)>,
    separator: &str,
    at_end: bool,
) -> Value {
    let parts = match found {
        Some((left, right)) => [left, separator, right],
        None if at_end => ["", "", s],
        None => [s, "", ""],
    };
    Value::from(Tuple::from(parts.map(Value::from)))
}

fn rsplit(s: &str, separator: Option<&str>, limit: i64) -> Vec<String> {
    let limit = usize::try_from(limit).ok().map(|n| n + 1);
    let mut parts: Vec<String> = match (separator, limit) {
        (Some(sep), Some(n)) => s.rsplitn(n, sep).map(Into::into).collect(),
        (Some(sep), None) => s.rsplit(sep).map(Into::into).collect(),
        (None, limit) => rsplit_space(s, limit.unwrap_or(usize::MAX)),
    };
    parts.reverse();
    parts
}

/// Words from the end; the last of at most `limit` parts is the rest.
fn rsplit_space(s: &str, limit: usize) -> Vec<String> {
    let mut parts = Vec::new();
    let mut rest = s.trim_end();
    while !rest.is_empty() {
        let cut = rest.rfind(char::is_whitespace);
        match cut {
            Some(at) if parts.len() + 1 < limit => {
                let word = rest[at..].trim_start();
                parts.push(word.to_owned());
                rest = rest[..at].trim_end();
            }
            _ => {
                parts.push(rest.to_owned());
                break;
            }
        }
    }
    parts
}

/// Python's line ends: more than `\n`.
fn split_lines(s: &str, keep: bool) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = s;
    let is_end = |c: char| {
        matches!(
            c,
            '\n' | '\r' | '\x0B' | '\x0C' | '\x1C'
                ..='\x1E' | '\u{85}' | '\u{2028}' | '\u{2029}'
        )
    };
    while let Some(at) = rest.find(is_end) {
        let end = if rest[at..].starts_with("\r\n") {
            at + 2
        } else {
            at + rest[at..].chars().next().map_or(1, char::len_utf8)
        };
        lines.push(rest[..if keep { end } else { at }].to_owned());
        rest = &rest[end..];
    }
    if !rest.is_empty() {
        lines.push(rest.to_owned());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn string_methods_follow_python() {
        assert_eq!(title("they're bill's 3x"), "They'Re Bill'S 3X");
        assert_eq!(rsplit("a,b,c", Some(","), 1), ["a,b", "c"]);
        assert_eq!(rsplit(" a  b c ", None, 1), [" a  b", "c"]);
        assert_eq!(rsplit(" a  b ", None, -1), ["a", "b"]);
        assert_eq!(split_lines("a\r\nb\u{2028}c\n", false), ["a", "b", "c"]);
        assert_eq!(split_lines("a\n\nb", true), ["a\n", "\n", "b"]);
    }
}
