//! What the hub's refusals mean, and what a person can do about them.

use super::http::Answer;
use super::settings::Token;
use crate::error::{Code, Error};

/// The error for an answer that is no success. what: what was asked for;
/// url: where.
pub fn refusal(
    answer: &Answer,
    token: Option<&Token>,
    repository: &str,
    what: &str,
    url: &str,
) -> Error {
    explain(
        answer.status,
        answer.header("x-error-code").unwrap_or_default(),
        answer.header("x-error-message").unwrap_or_default(),
        token,
        Asked {
            repository,
            what,
            url,
        },
    )
}

struct Asked<'a> {
    repository: &'a str,
    what: &'a str,
    url: &'a str,
}

fn explain(
    status: u16,
    code: &str,
    message: &str,
    token: Option<&Token>,
    asked: Asked,
) -> Error {
    let Asked {
        repository,
        what,
        url,
    } = asked;
    let said = match message {
        "" => format!("(HTTP status {status} from {url})"),
        _ => format!("(HTTP status {status} from {url}: {message})"),
    };
    let source = token.map(|token| token.source.as_str());
    let bad_token = message.contains("Invalid credentials");
    let page = page_of(url, repository);
    let (kind, text) = match (status, code, source) {
        (_, "GatedRepo", None) => (
            Code::Permission,
            format!(
                "{repository} is gated: accept its conditions at {page} and \
                 set HF_TOKEN to a token of that account {said}"
            ),
        ),
        (_, "GatedRepo", Some(source)) => (
            Code::Permission,
            format!(
                "{repository} is gated, and the account of the token in \
                 {source} has no access: ask for it at {page} {said}"
            ),
        ),
        (_, "RevisionNotFound", _) => (
            Code::NotFound,
            format!("{repository} exists, but {what} does not {said}"),
        ),
        (_, "EntryNotFound", _) => {
            (Code::NotFound, format!("there is no {what} {said}"))
        }
        (401, _, Some(source)) if bad_token => (
            Code::Permission,
            format!(
                "the hub does not accept the token in {source}: replace it, \
                 or remove it for public models {said}"
            ),
        ),
        (401 | 404, _, None) => (
            Code::NotFound,
            format!(
                "the hub knows no public model {repository}. If it is \
                 private, set HF_TOKEN {said}"
            ),
        ),
        (401 | 404, _, Some(source)) => (
            Code::NotFound,
            format!(
                "the hub knows no model {repository} that the token in \
                 {source} may see {said}"
            ),
        ),
        (403, _, _) => (
            Code::Permission,
            format!(
                "the hub forbids access to {what}; set HF_TOKEN to a token \
                 that allows it {said}"
            ),
        ),
        (429, _, _) => (
            Code::Unavailable,
            format!(
                "the hub has had too many requests from here: wait some \
                 minutes, or set HF_TOKEN {said}"
            ),
        ),
        (500..=599, _, _) => (
            Code::Unavailable,
            format!("the hub has trouble: try again later {said}"),
        ),
        _ => (
            Code::Unavailable,
            format!("the hub did not give {what} {said}"),
        ),
    };
    Error::new(kind, text)
}

/// The repository's page for people.
fn page_of(url: &str, repository: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("https", url));
    let host = rest.split('/').next().unwrap_or_default();
    format!("{scheme}://{host}/{repository}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_says_what_to_do() {
        let token = Token {
            secret: "hf_secret".to_owned(),
            source: "HF_TOKEN".to_owned(),
        };
        let cases = [
            (
                401,
                "GatedRepo",
                "",
                false,
                Code::Permission,
                "at https://h/o/n",
            ),
            (
                403,
                "GatedRepo",
                "",
                true,
                Code::Permission,
                "has no access",
            ),
            (404, "RevisionNotFound", "", true, Code::NotFound, "exists"),
            (404, "EntryNotFound", "", true, Code::NotFound, "no it"),
            (
                401,
                "",
                "Invalid credentials in Authorization header",
                true,
                Code::Permission,
                "does not accept the token in HF_TOKEN",
            ),
            (
                401,
                "RepoNotFound",
                "",
                false,
                Code::NotFound,
                "set HF_TOKEN",
            ),
            (404, "RepoNotFound", "", true, Code::NotFound, "may see"),
            (403, "", "", false, Code::Permission, "forbids"),
            (429, "", "", false, Code::Unavailable, "wait"),
            (503, "", "", false, Code::Unavailable, "later"),
            (302, "", "", false, Code::Unavailable, "did not give it"),
        ];
        for (status, code, message, with, kind, text) in cases {
            let asked = Asked {
                repository: "o/n",
                what: "it",
                url: "https://h/api/x",
            };
            let token = with.then_some(&token);
            let error = explain(status, code, message, token, asked);
            assert_eq!(error.code, kind, "{error}");
            assert!(error.message.contains(text), "{error}");
            assert!(error.message.contains(&status.to_string()), "{error}");
            assert!(error.message.contains(message), "{error}");
            assert!(!error.message.contains("hf_secret"), "{error}");
        }
    }
}
