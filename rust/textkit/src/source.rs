//! What a template's source needs before minijinja reads it.

/// Line ends become `\n` as Jinja makes them, and transformers' tags
/// `generation` and `endgeneration`, which mark the assistant's text and
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
        out.push_str(&renamed(tag));
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
        ];
        for (source, wanted) in cases {
            assert_eq!(prepare_source(source), wanted);
        }
    }
}
