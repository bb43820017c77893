//! Where the hub is, and where its files lie on this machine: the environment
//! variables of the Python package huggingface_hub, read as it reads them.

use std::path::PathBuf;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// The cache folder, with one folder for each repository.
    pub cache: PathBuf,
    /// Without a slash at its end.
    pub endpoint: String,
    pub token: Option<Token>,
    /// The network is not to be used.
    pub offline: bool,
    /// Certificates (PEM) to trust in place of the built-in ones.
    pub certificates: Option<PathBuf>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Token {
    pub secret: String,
    /// The variable or the file it came from, for messages.
    pub source: String,
}

impl Settings {
    pub fn from_environment() -> Self {
        Self::from(|name| std::env::var(name).ok())
    }

    pub fn from(lookup: impl Fn(&str) -> Option<String>) -> Self {
        let first = |names: &[&str]| {
            let mut values = names.iter().filter_map(|name| lookup(name));
            values.find(|value| !value.trim().is_empty())
        };
        let user = PathBuf::from(first(&["HOME"]).unwrap_or_default());
        let path = |text: String| match text.strip_prefix("~/") {
            Some(rest) => user.join(rest),
            None => PathBuf::from(text),
        };
        let home = first(&["HF_HOME"]).map(path).unwrap_or_else(|| {
            first(&["XDG_CACHE_HOME"])
                .map_or_else(|| user.join(".cache"), path)
                .join("huggingface")
        });
        let truth = |name| {
            first(&[name]).is_some_and(|value| {
                let value = value.trim().to_uppercase();
                ["1", "ON", "YES", "TRUE"].contains(&value.as_str())
            })
        };
        let token_file =
            first(&["HF_TOKEN_PATH"]).map_or_else(|| home.join("token"), path);
        Self {
            cache: first(&["HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"])
                .map_or_else(|| home.join("hub"), path),
            endpoint: first(&["HF_ENDPOINT"])
                .as_deref()
                .unwrap_or("https://huggingface.co")
                .trim_end_matches('/')
                .to_owned(),
            token: token(&first, &token_file),
            offline: truth("HF_HUB_OFFLINE") || truth("TRANSFORMERS_OFFLINE"),
            certificates: first(&["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"])
                .map(path),
        }
    }
}

fn token(
    first: &dyn Fn(&[&str]) -> Option<String>,
    file: &std::path::Path,
) -> Option<Token> {
    let made = |text: &str, source: String| {
        let secret = text.trim();
        (!secret.is_empty()).then(|| Token {
            secret: secret.to_owned(),
            source,
        })
    };
    for name in ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"] {
        if let Some(value) = first(&[name]) {
            return made(&value, name.to_owned());
        }
    }
    let text = std::fs::read_to_string(file).ok()?;
    made(&text, file.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::testing::Folder;

    fn settings(variables: &[(&str, &str)]) -> Settings {
        Settings::from(|name| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| value.to_string())
        })
    }

    #[test]
    fn the_cache_lies_where_huggingface_hub_puts_it() {
        let cases: [(&[(&str, &str)], &str); 6] = [
            (&[], "/u/.cache/huggingface/hub"),
            (&[("XDG_CACHE_HOME", "/x")], "/x/huggingface/hub"),
            (&[("HF_HOME", "~/h"), ("XDG_CACHE_HOME", "/x")], "/u/h/hub"),
            (&[("HF_HOME", "/h"), ("HF_HUB_CACHE", "/c")], "/c"),
            (&[("HUGGINGFACE_HUB_CACHE", "/old")], "/old"),
            (&[("HF_HUB_CACHE", "")], "/u/.cache/huggingface/hub"),
        ];
        for (variables, wanted) in cases {
            let all = [variables, &[("HOME", "/u")]].concat();
            assert_eq!(settings(&all).cache, PathBuf::from(wanted), "{all:?}");
        }
    }

    #[test]
    fn the_token_comes_from_the_environment_then_from_its_file() {
        let folder = Folder::new();
        let home = folder.path().to_str().unwrap();
        assert_eq!(settings(&[("HF_HOME", home)]).token, None);

        std::fs::write(folder.path().join("token"), "hf_file\n").unwrap();
        let token = settings(&[("HF_HOME", home)]).token.unwrap();
        assert_eq!(token.secret, "hf_file");
        assert!(token.source.ends_with("/token"));

        let both = [("HF_HOME", home), ("HF_TOKEN", " hf_variable ")];
        let token = settings(&both).token.unwrap();
        assert_eq!(token.secret, "hf_variable");
        assert_eq!(token.source, "HF_TOKEN");
    }

    #[test]
    fn endpoint_and_offline_are_read() {
        let plain = settings(&[]);
        assert_eq!(plain.endpoint, "https://huggingface.co");
        assert!(!plain.offline);
        let set = settings(&[
            ("HF_ENDPOINT", "http://mirror/"),
            ("HF_HUB_OFFLINE", "yes"),
        ]);
        assert_eq!(set.endpoint, "http://mirror");
        assert!(set.offline);
        assert!(!settings(&[("HF_HUB_OFFLINE", "0")]).offline);
        assert!(settings(&[("TRANSFORMERS_OFFLINE", "1")]).offline);
    }
}
