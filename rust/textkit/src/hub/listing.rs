//! What files a repository has at a commit.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::name::{is_commit, is_plain_path};
use crate::error::{Error, Result};

/// A file on the hub.
#[derive(Clone, Debug, PartialEq)]
pub struct File {
    pub size: u64,
    /// The name of its bytes in the cache: their SHA-256 for files that are
    /// kept in Git LFS, Git's own SHA-1 for the others.
    pub etag: String,
    /// What Git calls the file (or its pointer, where it is kept in LFS).
    pub blob_id: Option<String>,
}

/// Files by their paths in the repository.
pub type Files = BTreeMap<String, File>;

#[derive(Debug, PartialEq)]
pub struct Listing {
    pub commit: String,
    /// None where the hub told no size or sum.
    pub files: BTreeMap<String, Option<File>>,
}

#[derive(Deserialize)]
struct Info {
    sha: String,
    #[serde(default)]
    siblings: Vec<Sibling>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sibling {
    rfilename: String,
    size: Option<u64>,
    blob_id: Option<String>,
    lfs: Option<Lfs>,
}

#[derive(Deserialize)]
struct Lfs {
    sha256: String,
    size: u64,
}

impl Sibling {
    fn file(self) -> Option<File> {
        let mut file = match &self.lfs {
            Some(lfs) => File::checked(lfs.size, &lfs.sha256)?,
            None => File::checked(self.size?, self.blob_id.as_ref()?)?,
        };
        file.blob_id = self.blob_id;
        Some(file)
    }
}

impl File {
    /// None where the etag cannot be the name of a file.
    pub fn checked(size: u64, etag: &str) -> Option<Self> {
        let good = |b: u8| b.is_ascii_alphanumeric() || b"-_".contains(&b);
        (!etag.is_empty() && etag.len() <= 128 && etag.bytes().all(good)).then(
            || Self {
                size,
                etag: etag.to_owned(),
                blob_id: None,
            },
        )
    }
}

impl Listing {
    /// Reads the answer of /api/models/{repository}/revision/{revision}.
    pub fn parse(json: &[u8]) -> Result<Self> {
        let wrong =
            |why: String| Error::corrupt(format!("the hub's answer {why}"));
        let info: Info = serde_json::from_slice(json)
            .map_err(|e| wrong(format!("is not what it should be: {e}")))?;
        if !is_commit(&info.sha) {
            return Err(wrong(format!("names a wrong commit: {:?}", info.sha)));
        }
        let mut files = BTreeMap::new();
        for sibling in info.siblings {
            let path = sibling.rfilename.clone();
            if !is_plain_path(&path) {
                return Err(wrong(format!("names a wrong file: {path:?}")));
            }
            files.insert(path, sibling.file());
        }
        Ok(Self {
            commit: info.sha,
            files,
        })
    }
}

/// The listing of a commit as huggingface_hub keeps it in the cache, in
/// trees/<commit>.json.
#[derive(Serialize, Deserialize)]
struct Tree {
    format_version: u32,
    files: BTreeMap<String, TreeFile>,
}

#[derive(Serialize, Deserialize)]
struct TreeFile {
    size: u64,
    blob_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    lfs_sha256: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lfs_size: Option<u64>,
}

const TREE_FORMAT: u32 = 1;

/// None when not all is known that belongs into it.
pub fn tree_json(listing: &Listing) -> Option<String> {
    let mut files = BTreeMap::new();
    for (path, file) in &listing.files {
        let file = file.as_ref()?;
        let blob_id = file.blob_id.clone()?;
        let lfs = blob_id != file.etag;
        let entry = TreeFile {
            size: file.size,
            blob_id,
            lfs_sha256: lfs.then(|| file.etag.clone()),
            lfs_size: lfs.then_some(file.size),
        };
        files.insert(path.clone(), entry);
    }
    let tree = Tree {
        format_version: TREE_FORMAT,
        files,
    };
    serde_json::to_string_pretty(&tree).ok()
}

/// None for another format, or one that is damaged: then it is as if there
/// were none.
pub fn parse_tree(json: &[u8]) -> Option<Files> {
    let tree: Tree = serde_json::from_slice(json).ok()?;
    if tree.format_version != TREE_FORMAT {
        return None;
    }
    let mut files = Files::new();
    for (path, entry) in tree.files {
        if !is_plain_path(&path) {
            return None;
        }
        let etag = entry.lfs_sha256.as_ref().unwrap_or(&entry.blob_id);
        let size = entry.lfs_size.unwrap_or(entry.size);
        let mut file = File::checked(size, etag)?;
        file.blob_id = Some(entry.blob_id);
        files.insert(path, file);
    }
    Some(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit() -> String {
        "0123456789".repeat(4)
    }

    fn info(siblings: &str) -> String {
        format!(r#"{{"sha": "{}", "siblings": [{siblings}]}}"#, commit())
    }

    #[test]
    fn the_hubs_answer_is_read() {
        let json = info(
            r#"{"rfilename": "a.json", "size": 5, "blobId": "e1"},
               {"rfilename": "b/c.gguf", "size": 9, "blobId": "e2",
                "lfs": {"sha256": "e3", "size": 9, "pointerSize": 1}},
               {"rfilename": "d.txt"}"#,
        );
        let listing = Listing::parse(json.as_bytes()).unwrap();
        assert_eq!(listing.commit, commit());
        let file = |path: &str| listing.files[path].clone().unwrap();
        assert_eq!(file("a.json").etag, "e1");
        assert_eq!(file("b/c.gguf").etag, "e3");
        assert_eq!(file("b/c.gguf").blob_id.as_deref(), Some("e2"));
        assert_eq!(file("b/c.gguf").size, 9);
        assert_eq!(listing.files["d.txt"], None);
    }

    #[test]
    fn answers_that_lead_out_of_the_cache_are_refused() {
        for path in ["../x", "/etc/x", "a//b", "a\\\\b", ""] {
            let json = info(&format!(r#"{{"rfilename": "{path}"}}"#));
            let error = Listing::parse(json.as_bytes()).unwrap_err();
            assert!(error.message.contains("wrong file"), "{path}");
        }
        let json = r#"{"sha": "../main", "siblings": []}"#;
        let error = Listing::parse(json.as_bytes()).unwrap_err();
        assert!(error.message.contains("wrong commit"), "{error}");
        assert_eq!(File::checked(1, "../x"), None);
        assert!(Listing::parse(b"<html>").is_err());
    }

    #[test]
    fn a_tree_is_read_as_it_was_written() {
        let json = info(
            r#"{"rfilename": "a.json", "size": 5, "blobId": "e1"},
               {"rfilename": "c.gguf", "size": 9, "blobId": "e2",
                "lfs": {"sha256": "e3", "size": 9}}"#,
        );
        let listing = Listing::parse(json.as_bytes()).unwrap();
        let json = tree_json(&listing).unwrap();
        assert!(json.contains(r#""lfs_sha256": "e3""#), "{json}");
        let files = parse_tree(json.as_bytes()).unwrap();
        assert_eq!(files.len(), 2);
        for (path, file) in &files {
            assert_eq!(listing.files[path].as_ref(), Some(file));
        }
        let newer = json.replace(r#"version": 1"#, r#"version": 2"#);
        assert_eq!(parse_tree(newer.as_bytes()), None);
        assert_eq!(parse_tree(&json.as_bytes()[1..]), None);
    }

    #[test]
    fn no_tree_is_written_of_what_is_not_known() {
        let json = info(r#"{"rfilename": "a.json"}"#);
        let listing = Listing::parse(json.as_bytes()).unwrap();
        assert_eq!(tree_json(&listing), None);
    }
}
