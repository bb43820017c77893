//! What a template's source needs before minijinja reads it.

/// Line ends become `\n` as Jinja makes them; quoted texts are written so that
/// minijinja reads what Python would; transformers' tags `generation` and `endgeneration`, which mark the assistant's text and
/// print their body in a scope of its own, become `with` and `endwith`.
pub fn prepare_source(source: &str) -> String {
    let source = source.replace("\r\n", "\n").replace('\r', "\n");
    let mut out = String::with_capacity(source.len());
    let mut rest = source.as_str();
    while let Some(start) = rest.find("{") {
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        let length = if rest.starts_with("{#") {
            rest.find("#}").map(|at| at + 2)
        } else if rest.starts_with("{%") {
            tag_end(rest, "%}")
        } else if rest.starts_with("{{") {
            tag_end(rest, "}}")
        } else {
            Some(1)
        };
        let Some(length) = length else { break };
        let (tag, after) = rest.split_at(length);
        rest = after;
        out.push_str(&python_strings(&renamed(tag)));
        if keyword(tag) == "raw" {
            let end = raw_end(rest);
            out.push_str(&rest[..end]);
            rest = &rest[end..];
        }
    }
    out.push_str(rest);
    out
}

/// Length of the tag at the start of `text`; quotes hide its end.
fn tag_end(text: &str, end: &str) -> Option<usize> {
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(2) {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if c == '\\' => escaped = true,
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c == '"' || c == '\'' => quote = Some(c),
            None if text[at..].starts_with(end) => return Some(at + end.len()),
            None => {}
        }
    }
    None
}

/// Where the tag `endraw` starts.
fn raw_end(text: &str) -> usize {
    let mut from = 0;
    while let Some(at) = text[from..].find("{%") {
        let start = from + at;
        let tag = text[start..]
            .find("%}")
            .map(|n| &text[start..start + n + 2]);
        match tag {
            Some(tag) if keyword(tag) == "endraw" => return start,
            _ => from = start + 2,
        }
    }
    text.len()
}

fn keyword(tag: &str) -> &str {
    let body = tag.strip_prefix("{%").and_then(|t| t.strip_suffix("%}"));
    body.map_or("", |t| {
        t.trim_start_matches(['-', '+'])
            .trim_end_matches(['-', '+'])
            .trim()
    })
}

fn renamed(tag: &str) -> String {
    match keyword(tag) {
        "generation" => tag.replacen("generation", "with", 1),
        "endgeneration" => tag.replacen("endgeneration", "endwith", 1),
        _ => tag.to_owned(),
    }
}

/// Quoted texts as minijinja must see them to give Python's characters;
/// texts that follow each other become one, as Jinja joins them.
fn python_strings(tag: &str) -> String {
    if tag.starts_with("{#") {
        return tag.to_owned();
    }
    let mut out = String::with_capacity(tag.len());
    // The quote that ends the text here, and the one that ends it in `out`.
    let mut quotes: Option<(char, char)> = None;
    let mut chars = tag.chars();
    while let Some(c) = chars.next() {
        let Some((end, out_end)) = quotes else {
            if c == '"' || c == '\'' {
                quotes = Some((c, c));
            }
            out.push(c);
            continue;
        };
        if c == '\\' {
            let (escape, length) = python_escape(chars.as_str());
            out.push_str(&escape);
            chars = chars.as_str()[length..].chars();
        } else if c == end {
            let next = chars.as_str().trim_start();
            match next.chars().next().filter(|c| matches!(c, '"' | '\'')) {
                Some(quote) => {
                    quotes = Some((quote, out_end));
                    chars = next[1..].chars();
                }
                None => {
                    quotes = None;
                    out.push(out_end);
                }
            }
        } else {
            if c == out_end {
                out.push('\\');
            }
            out.push(c);
        }
    }
    out
}

/// What the escape whose text after the backslash starts `rest` becomes, and
/// how much of `rest` it takes.
fn python_escape(rest: &str) -> (String, usize) {
    let Some(c) = rest.chars().next() else {
        return ("\\".to_owned(), 0);
    };
    let long = || {
        let hex = rest.get(1..9)?;
        char::from_u32(u32::from_str_radix(hex, 16).ok()?)
    };
    match c {
        '/' => ("\\\\/".to_owned(), 1),
        'a' => ("\x07".to_owned(), 1),
        'v' => ("\x0B".to_owned(), 1),
        '\n' => (String::new(), 1),
        'U' => match long() {
            Some(c) => (c.to_string(), 9),
            None => ("\\U".to_owned(), 1),
        },
        _ => (format!("\\{c}"), c.len_utf8()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_generation_tags_are_renamed() {
        let cases = [
            (
                "{%- generation -%}x{% endgeneration %}",
                "{%- with -%}x{% endwith %}",
            ),
            ("{{ '{% generation %}' }}", "{{ '{% generation %}' }}"),
            ("{# {% generation %} #}", "{# {% generation %} #}"),
            (
                "{% raw %}{% generation %}{% endraw %}{%generation%}",
                "{% raw %}{% generation %}{% endraw %}{%with%}",
            ),
            (
                "{% if add_generation_prompt %}{",
                "{% if add_generation_prompt %}{",
            ),
            ("a\r\nb\rc", "a\nb\nc"),
            (r#"{{ 'a' "b'" | f('c') }}"#, r"{{ 'ab\'' | f('c') }}"),
            (r"{{ 'a\/b\n\'\U0001F600' }}\/", r"{{ 'a\\/b\n\'😀' }}\/"),
        ];
        for (source, wanted) in cases {
            assert_eq!(prepare_source(source), wanted);
        }
    }
}
