//! The models in the cache.

use std::fs;
use std::path::Path;

use super::cache::Repository;
use super::files::io_error;
use super::name::Name;
use crate::error::{Code, Result};

pub struct Installed {
    /// What fetches it: organization/name, with the file's name for a GGUF.
    pub name: String,
    pub path: String,
    /// A branch or tag that stands for it here, else its commit.
    pub revision: String,
    /// "safetensors" or "gguf"; empty for an unfinished download.
    pub format: &'static str,
    pub bytes: u64,
    pub complete: bool,
}

/// Repositories that hold no model of a known format are left out.
pub fn installed(cache: &Path) -> Result<Vec<Installed>> {
    let entries = match fs::read_dir(cache) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            return Ok(Vec::new())
        }
        Err(e) => return Err(io_error(&e, cache)),
    };
    let mut found = Vec::new();
    for folder in entries.flatten() {
        let folder = folder.file_name().to_string_lossy().into_owned();
        let name = folder
            .strip_prefix("models--")
            .and_then(|name| Name::parse(&name.replacen("--", "/", 1)).ok());
        if let Some(name) = name {
            let repository = Repository::new(cache, &name.repository);
            found.extend(models_of(&repository, &name));
        }
    }
    found.sort_by(|a, b| (&a.name, &a.revision).cmp(&(&b.name, &b.revision)));
    Ok(found)
}

fn models_of(repository: &Repository, name: &Name) -> Vec<Installed> {
    let references = references(repository);
    let mut models = Vec::new();
    let mut unfinished = has_partials(repository);
    for commit in names_in(&repository.root.join("snapshots")) {
        let reference = references.iter().find(|(_, to)| *to == commit);
        let revision = reference.map_or(&commit, |(name, _)| name);
        let here = repository.files_here(&commit);
        let ggufs = here.keys().filter(|path| path.ends_with(".gguf"));
        let mut names: Vec<Name> = ggufs
            .map(|path| Name {
                part: Some(path.clone()),
                ..name.clone()
            })
            .collect();
        if here.keys().any(|path| path.ends_with(".safetensors")) {
            names.push(name.clone());
        } else if names.is_empty() {
            unfinished |= was_begun(repository, &commit, name);
        }
        for name in names {
            match repository.find(&commit, &name) {
                Ok(Some(model)) => models.push(Installed {
                    name: name.text(),
                    path: model.path.display().to_string(),
                    revision: revision.clone(),
                    format: model.format,
                    bytes: model.bytes,
                    complete: true,
                }),
                _ => unfinished |= was_begun(repository, &commit, &name),
            }
        }
    }
    if models.is_empty() && unfinished {
        models.push(Installed {
            name: name.repository.clone(),
            path: repository.root.display().to_string(),
            revision: String::new(),
            format: "",
            bytes: bytes_in(&repository.root.join("blobs")),
            complete: false,
        });
    }
    models
}

/// True when a listing tells that the model exists at this commit: then it is
/// its files that are missing. A name that fits several counts, too.
fn was_begun(repository: &Repository, commit: &str, name: &Name) -> bool {
    repository.listing(commit).is_some_and(|files| {
        let paths: Vec<&str> = files.keys().map(String::as_str).collect();
        match super::select::select(name, &paths) {
            Ok(_) => true,
            Err(error) => error.code == Code::InvalidArgument,
        }
    })
}

/// Branches and tags with their commits, "main" first.
fn references(repository: &Repository) -> Vec<(String, String)> {
    let mut names = Vec::new();
    let root = repository.root.join("refs");
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        for name in names_in(&root.join(&folder)) {
            let path = format!("{folder}{name}");
            if root.join(&path).is_dir() && folder.matches('/').count() < 4 {
                folders.push(format!("{path}/"));
            } else if let Some(commit) = repository.commit_of(&path) {
                names.push((path, commit));
            }
        }
    }
    names.sort_by_key(|(name, _)| (name != "main", name.clone()));
    names
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().into_string());
    let mut names: Vec<String> = names.filter_map(|name| name.ok()).collect();
    names.sort();
    names
}

fn has_partials(repository: &Repository) -> bool {
    let blobs = names_in(&repository.root.join("blobs"));
    blobs.iter().any(|name| name.ends_with(".incomplete"))
}

fn bytes_in(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.filter_map(|entry| fs::metadata(entry.path()).ok());
    sizes.map(|data| data.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::files::make_folder_of;
    use crate::hub::testing::Folder;

    fn commit(digit: &str) -> String {
        digit.repeat(40)
    }

    fn add(repository: &Repository, commit: &str, path: &str, size: usize) {
        let blob = repository.blob(path);
        make_folder_of(&blob).unwrap();
        fs::write(blob, vec![0; size]).unwrap();
        repository.link(commit, path, path).unwrap();
    }

    #[test]
    fn models_are_listed_with_their_revisions_and_sizes() {
        let folder = Folder::new();
        assert!(installed(&folder.path().join("none")).unwrap().is_empty());

        let directory = Repository::new(folder.path(), "o/dir");
        for path in ["config.json", "model.safetensors", "tokenizer.json"] {
            add(&directory, &commit("a"), path, 10);
        }
        add(&directory, &commit("a"), "README.md", 1000);
        directory.write_ref("refs/pr/1", &commit("a")).unwrap();
        directory.write_ref("main", &commit("a")).unwrap();
        let ggufs = Repository::new(folder.path(), "o/ggufs");
        add(&ggufs, &commit("b"), "m-Q4_0.gguf", 20);
        add(&ggufs, &commit("b"), "m-Q8_0.gguf", 30);
        fs::create_dir_all(folder.path().join("datasets--o--d")).unwrap();
        let other = Repository::new(folder.path(), "o/other");
        add(&other, &commit("c"), "pytorch_model.bin", 10);

        let found = installed(folder.path()).unwrap();
        let seen: Vec<_> = found
            .iter()
            .map(|m| (m.name.as_str(), m.revision.as_str(), m.bytes))
            .collect();
        let b = commit("b");
        let wanted = [
            ("o/dir", "main", 30),
            ("o/ggufs:m-Q4_0.gguf", b.as_str(), 20),
            ("o/ggufs:m-Q8_0.gguf", b.as_str(), 30),
        ];
        assert_eq!(seen, wanted);
        assert!(found.iter().all(|model| model.complete));
        assert_eq!(found[0].format, "safetensors");
        assert!(found[1].path.ends_with("m-Q4_0.gguf"));
    }

    #[test]
    fn an_unfinished_download_is_listed_as_such() {
        let folder = Folder::new();
        let repository = Repository::new(folder.path(), "o/n");
        let partial = repository.partial("e");
        make_folder_of(&partial).unwrap();
        fs::write(partial, [0; 7]).unwrap();
        let found = installed(folder.path()).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].complete, found[0].bytes), (false, 7));
    }
}
