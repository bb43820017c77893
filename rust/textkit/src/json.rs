//! `json.dumps` of Python, which transformers' `tojson` filter calls.

use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{Error, ErrorKind};

struct Style {
    ensure_ascii: bool,
    sort_keys: bool,
    indent: Option<String>,
    item: String,
    key: String,
}

impl Style {
    fn from_kwargs(kwargs: &Kwargs) -> Result<Self, Error> {
        let indent = match kwargs.get::<Option<Value>>("indent")? {
            Some(v) if v.kind() == ValueKind::Number => {
                Some(" ".repeat(usize::try_from(v).unwrap_or(0)))
            }
            Some(v) if v.kind() == ValueKind::String => Some(v.to_string()),
            Some(v) if !v.is_none() && !v.is_undefined() => {
                return Err(bad("indent is a number or a string"))
            }
            _ => None,
        };
        let item = if indent.is_some() { "," } else { ", " };
        let (item, key) = match kwargs.get::<Option<Value>>("separators")? {
            Some(pair) if !pair.is_none() && !pair.is_undefined() => {
                let mut parts = pair.try_iter()?.map(|v| v.to_string());
                match (parts.next(), parts.next(), parts.next()) {
                    (Some(item), Some(key), None) => (item, key),
                    _ => return Err(bad("separators is a pair of strings")),
                }
            }
            _ => (item.to_owned(), ": ".to_owned()),
        };
        let flag = |name: &str| -> Result<bool, Error> {
            Ok(kwargs.get::<Option<bool>>(name)?.unwrap_or(false))
        };
        let style = Self {
            ensure_ascii: flag("ensure_ascii")?,
            sort_keys: flag("sort_keys")?,
            indent,
            item,
            key,
        };
        kwargs.assert_all_used()?;
        Ok(style)
    }
}

fn bad(what: &str) -> Error {
    Error::new(ErrorKind::InvalidOperation, format!("tojson: {what}"))
}

/// The filter `tojson(ensure_ascii=False, indent=None, separators=None,
/// sort_keys=False)`.
pub fn tojson(value: &Value, kwargs: Kwargs) -> Result<String, Error> {
    let style = Style::from_kwargs(&kwargs)?;
    let mut out = String::new();
    write(value, &style, 0, &mut out)?;
    Ok(out)
}

fn write(
    value: &Value,
    style: &Style,
    depth: usize,
    out: &mut String,
) -> Result<(), Error> {
    match value.kind() {
        ValueKind::None => out.push_str("null"),
        ValueKind::Bool => {
            out.push_str(if value.is_true() { "true" } else { "false" })
        }
        ValueKind::Number => out.push_str(&number(value, true)),
        ValueKind::String => {
            string(value.as_str().unwrap_or_default(), style, out)
        }
        ValueKind::Seq | ValueKind::Iterable => {
            let items: Vec<Value> = value.try_iter()?.collect();
            group(['[', ']'], items.len(), style, depth, out, |i, out| {
                write(&items[i], style, depth + 1, out)
            })?;
        }
        ValueKind::Map => {
            let mut keys: Vec<Value> = value.try_iter()?.collect();
            if style.sort_keys {
                keys.sort();
            }
            group(['{', '}'], keys.len(), style, depth, out, |i, out| {
                string(&key_text(&keys[i])?, style, out);
                out.push_str(&style.key);
                write(&value.get_item(&keys[i])?, style, depth + 1, out)
            })?;
        }
        kind => return Err(bad(&format!("{kind} is not JSON serializable"))),
    }
    Ok(())
}

fn key_text(key: &Value) -> Result<String, Error> {
    Ok(match key.kind() {
        ValueKind::String => key.as_str().unwrap_or_default().to_owned(),
        ValueKind::None => "null".to_owned(),
        ValueKind::Bool if key.is_true() => "true".to_owned(),
        ValueKind::Bool => "false".to_owned(),
        ValueKind::Number => number(key, true),
        kind => return Err(bad(&format!("a {kind} cannot be a key"))),
    })
}

fn group(
    brackets: [char; 2],
    count: usize,
    style: &Style,
    depth: usize,
    out: &mut String,
    mut item: impl FnMut(usize, &mut String) -> Result<(), Error>,
) -> Result<(), Error> {
    let line = |depth: usize, out: &mut String| {
        if let (Some(indent), true) = (&style.indent, count > 0) {
            out.push('\n');
            out.push_str(&indent.repeat(depth));
        }
    };
    out.push(brackets[0]);
    for i in 0..count {
        if i > 0 {
            out.push_str(&style.item);
        }
        line(depth + 1, out);
        item(i, out)?;
    }
    line(depth, out);
    out.push(brackets[1]);
    Ok(())
}

fn string(text: &str, style: &Style, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x08' => out.push_str("\\b"),
            '\x0C' => out.push_str("\\f"),
            c if c < ' ' || (style.ensure_ascii && !c.is_ascii()) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// A number as Python writes it: in JSON, or as `str` does.
pub fn number(value: &Value, json: bool) -> String {
    if value.is_integer() {
        return value.to_string();
    }
    match f64::try_from(value.clone()) {
        Ok(float) => float_repr(float, json),
        Err(_) => value.to_string(),
    }
}

/// `repr` of a Python float: the shortest digits that read back, with an
/// exponent below 1e-4 and from 1e16 on.
fn float_repr(value: f64, json: bool) -> String {
    if value.is_nan() {
        return if json { "NaN" } else { "nan" }.to_owned();
    }
    if value.is_infinite() {
        let sign = if value < 0.0 { "-" } else { "" };
        return format!("{sign}{}", if json { "Infinity" } else { "inf" });
    }
    let scientific = format!("{value:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if value != 0.0 && !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    let plain = format!("{value}");
    if plain.contains('.') {
        plain
    } else {
        plain + ".0"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_written_as_python_writes_them() {
        let cases = [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (0.1, "0.1"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.5e300, "1.5e+300"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (123456789.125, "123456789.125"),
        ];
        for (value, text) in cases {
            assert_eq!(float_repr(value, true), text);
        }
    }
}
