//! Which files of a repository make the model.

use super::name::Name;
use crate::error::{Code, Error, Result};

#[derive(Clone, Debug, PartialEq)]
pub enum Selection {
    /// A folder in MLX's layout: what mlx_lm 0.32.2 downloads.
    Directory(Vec<String>),
    Gguf(String),
}

impl Selection {
    pub fn files(&self) -> &[String] {
        match self {
            Self::Directory(files) => files,
            Self::Gguf(file) => std::slice::from_ref(file),
        }
    }

    pub fn format(&self) -> &'static str {
        match self {
            Self::Directory(_) => "safetensors",
            Self::Gguf(_) => "gguf",
        }
    }
}

/// Chooses among the paths of a repository.
/// Errors: NotFound; InvalidArgument where the name fits several files.
pub fn select(name: &Name, paths: &[&str]) -> Result<Selection> {
    let ggufs: Vec<&str> = paths.iter().copied().filter(is_gguf).collect();
    match &name.part {
        Some(part) => one_of(name, &ggufs, |path| fits(path, part)),
        None if paths.iter().any(|path| is_weights(path)) => {
            let wanted = paths.iter().filter(|path| is_wanted(path));
            Ok(Selection::Directory(
                wanted.map(|path| path.to_string()).collect(),
            ))
        }
        None if ggufs.is_empty() => Err(Error::new(
            Code::NotFound,
            format!(
                "{} has neither model*.safetensors nor a .gguf file, and \
                 weights are read from these only",
                name.repository
            ),
        )),
        None => one_of(name, &ggufs, |_| true),
    }
}

fn one_of(
    name: &Name,
    ggufs: &[&str],
    good: impl Fn(&str) -> bool,
) -> Result<Selection> {
    let found: Vec<&str> =
        ggufs.iter().copied().filter(|path| good(path)).collect();
    if let [path] = found[..] {
        return Ok(Selection::Gguf(path.to_owned()));
    }
    let repository = &name.repository;
    let asked = name.part.as_deref().unwrap_or_default();
    if found.is_empty() {
        let there = match ggufs {
            [] => "it has no .gguf file".to_owned(),
            _ => format!("it has{}", list(repository, ggufs)),
        };
        return Err(Error::new(
            Code::NotFound,
            format!("{repository} has no GGUF file '{asked}'; {there}"),
        ));
    }
    if found.iter().all(|path| path.contains("-of-0")) {
        return Err(Error::unsupported(format!(
            "{} is split into {} GGUF files, which cannot be loaded as they \
             are: merge them with llama.cpp's gguf-split --merge",
            name.text(),
            found.len()
        )));
    }
    Err(Error::invalid(format!(
        "{} fits several GGUF files; name one of them:{}",
        name.text(),
        list(repository, &found)
    )))
}

fn list(repository: &str, paths: &[&str]) -> String {
    let line = |path: &&str| format!("\n  {repository}:{path}");
    paths.iter().map(line).collect()
}

/// Companions of a model are left out: they hold no language model.
fn is_gguf(path: &&str) -> bool {
    let file = file_name(path).to_lowercase();
    file.ends_with(".gguf")
        && !file.starts_with("mmproj")
        && !file.starts_with("imatrix")
}

fn is_weights(path: &str) -> bool {
    path.starts_with("model") && path.ends_with(".safetensors")
}

/// mlx_lm's patterns.
fn is_wanted(path: &str) -> bool {
    const ENDINGS: [&str; 6] =
        [".json", ".py", ".tiktoken", ".txt", ".jsonl", ".jinja"];
    is_weights(path)
        || path == "tokenizer.model"
        || ENDINGS.iter().any(|ending| path.ends_with(ending))
}

/// True for the file's name or path, or for a quantization in its name:
/// Q4_K_M fits Some-Model.Q4_K_M.gguf and Some-Model-q4_k_m-00001-of-2.gguf.
fn fits(path: &str, part: &str) -> bool {
    if path == part || file_name(path) == part {
        return true;
    }
    let stem = &file_name(path)[..file_name(path).len() - ".gguf".len()];
    stem.split(['-', '.'])
        .any(|word| word.eq_ignore_ascii_case(part))
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(name: &str, paths: &[&str]) -> Result<Selection> {
        select(&Name::parse(name).unwrap(), paths)
    }

    #[test]
    fn a_folder_is_what_mlx_lm_takes() {
        let paths = [
            ".gitattributes",
            "README.md",
            "chat_template.jinja",
            "config.json",
            "consolidated.safetensors",
            "merges.txt",
            "model-00001-of-00002.safetensors",
            "model.Q8_0.gguf",
            "model.safetensors.index.json",
            "onnx/model.onnx",
            "tokenizer.model",
        ];
        let chosen = choose("o/n", &paths).unwrap();
        assert_eq!(
            chosen.files(),
            [
                "chat_template.jinja",
                "config.json",
                "merges.txt",
                "model-00001-of-00002.safetensors",
                "model.safetensors.index.json",
                "tokenizer.model",
            ]
        );
        assert_eq!(chosen.format(), "safetensors");
        let gguf = choose("o/n:q8_0", &paths).unwrap();
        assert_eq!(gguf, Selection::Gguf("model.Q8_0.gguf".into()));
    }

    #[test]
    fn the_only_gguf_needs_no_part() {
        let paths = ["README.md", "m-Q4_0.gguf", "mmproj-m-f16.gguf"];
        let chosen = choose("o/n", &paths).unwrap();
        assert_eq!(chosen, Selection::Gguf("m-Q4_0.gguf".into()));
    }

    #[test]
    fn a_part_names_a_quantization_or_a_file() {
        let paths = ["m-Q4_K_M.gguf", "m-Q4_K_S.gguf", "x/m-IQ4_K.gguf"];
        for part in ["Q4_K_M", "q4_k_m", "m-Q4_K_M.gguf"] {
            let chosen = choose(&format!("o/n:{part}"), &paths).unwrap();
            assert_eq!(chosen.files(), ["m-Q4_K_M.gguf"], "{part}");
        }
        let chosen = choose("o/n:x/m-IQ4_K.gguf", &paths).unwrap();
        assert_eq!(chosen.files(), ["x/m-IQ4_K.gguf"]);
        for part in ["Q4_K", "Q8_0", "K_M"] {
            let error = choose(&format!("o/n:{part}"), &paths).unwrap_err();
            assert_eq!(error.code, Code::NotFound, "{part}");
            assert!(error.message.contains("o/n:m-Q4_K_M.gguf"), "{error}");
        }
    }

    #[test]
    fn several_are_listed() {
        let error = choose("o/n", &["m-Q4_0.gguf", "m-Q8_0.gguf"]).unwrap_err();
        assert_eq!(error.code, Code::InvalidArgument);
        let lines = "\n  o/n:m-Q4_0.gguf\n  o/n:m-Q8_0.gguf";
        assert!(error.message.ends_with(lines), "{error}");
    }

    #[test]
    fn what_cannot_be_loaded_is_said() {
        let split = [
            "q8/m-Q8_0-00001-of-00002.gguf",
            "q8/m-Q8_0-00002-of-00002.gguf",
        ];
        let error = choose("o/n:Q8_0", &split).unwrap_err();
        assert_eq!(error.code, Code::Unsupported);
        assert!(error.message.contains("gguf-split"), "{error}");
        let error = choose("o/n", &["pytorch_model.bin"]).unwrap_err();
        assert_eq!(error.code, Code::NotFound);
        let error = choose("o/n:Q8_0", &["pytorch_model.bin"]).unwrap_err();
        assert!(error.message.contains("no .gguf file"), "{error}");
    }
}
