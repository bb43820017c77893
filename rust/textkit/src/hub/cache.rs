//! A repository in the cache, in the layout of huggingface_hub:
//!
//! ```text
//! models--organization--name/blobs/<etag>             bytes
//!                            snapshots/<commit>/<path> links to them
//!                            refs/<revision>           a commit
//!                            trees/<commit>.json       its listing
//! .locks/models--organization--name/<etag>.lock
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::files::{
    io_error, make_folder_of, put_in_place, replace_file, temporary_beside,
};
use super::http::Tick;
use super::listing::{parse_tree, File, Files};
use super::name::{check_revision, is_commit, Name};
use super::select::{select, Selection};
use crate::error::{Code, Error, Result};

const TICK: Duration = Duration::from_millis(100);
const DEEPEST: usize = 8;

pub struct Repository {
    pub root: PathBuf,
    locks: PathBuf,
}

/// A model that is here as a whole.
#[derive(Debug)]
pub struct Found {
    pub path: PathBuf,
    pub format: &'static str,
    pub bytes: u64,
}

/// What a process holds while it writes a blob.
pub struct Lock {
    _file: fs::File,
}

impl Repository {
    pub fn new(cache: &Path, repository: &str) -> Self {
        let folder = format!("models--{}", repository.replace('/', "--"));
        Self {
            root: cache.join(&folder),
            locks: cache.join(".locks").join(folder),
        }
    }

    pub fn blob(&self, etag: &str) -> PathBuf {
        self.root.join("blobs").join(etag)
    }

    /// Where a blob grows until it is whole.
    pub fn partial(&self, etag: &str) -> PathBuf {
        self.root.join("blobs").join(format!("{etag}.incomplete"))
    }

    pub fn snapshot(&self, commit: &str) -> PathBuf {
        self.root.join("snapshots").join(commit)
    }

    fn tree(&self, commit: &str) -> PathBuf {
        self.root.join("trees").join(format!("{commit}.json"))
    }

    pub fn has_blob(&self, file: &File) -> bool {
        fs::metadata(self.blob(&file.etag))
            .is_ok_and(|data| data.is_file() && data.len() == file.size)
    }

    /// The commit that a revision meant when it was last asked for.
    pub fn commit_of(&self, revision: &str) -> Option<String> {
        if is_commit(revision) {
            return Some(revision.to_owned());
        }
        check_revision(revision).ok()?;
        let file = self.root.join("refs").join(revision);
        let commit = fs::read_to_string(file).ok()?.trim().to_owned();
        is_commit(&commit).then_some(commit)
    }

    pub fn write_ref(&self, revision: &str, commit: &str) -> Result<()> {
        if is_commit(revision)
            || self.commit_of(revision).as_deref() == Some(commit)
        {
            return Ok(());
        }
        replace_file(&self.root.join("refs").join(revision), commit)
    }

    pub fn write_tree(&self, commit: &str, json: &str) -> Result<()> {
        replace_file(&self.tree(commit), json)
    }

    pub fn listing(&self, commit: &str) -> Option<Files> {
        parse_tree(&fs::read(self.tree(commit)).ok()?)
    }

    /// The files of a snapshot with their sizes.
    pub fn files_here(&self, commit: &str) -> BTreeMap<String, u64> {
        let mut files = BTreeMap::new();
        walk(&self.snapshot(commit), "", DEEPEST, &mut files);
        files
    }

    /// The model at a commit, if all of it is here.
    /// Errors: InvalidArgument where the name fits several GGUF files.
    pub fn find(&self, commit: &str, name: &Name) -> Result<Option<Found>> {
        let here = self.files_here(commit);
        if here.is_empty() {
            return Ok(None);
        }
        let listing = self.listing(commit);
        let paths: Vec<&str> = match &listing {
            Some(files) => files.keys().map(String::as_str).collect(),
            None => here.keys().map(String::as_str).collect(),
        };
        let selection = match select(name, &paths) {
            Ok(selection) => selection,
            Err(error) if error.code == Code::InvalidArgument => {
                return Err(error)
            }
            Err(_) => return Ok(None),
        };
        let whole = match &listing {
            Some(files) => selection
                .files()
                .iter()
                .all(|path| here.get(path) == Some(&files[path].size)),
            None => self.seems_whole(commit, &selection, &here),
        };
        if !whole {
            return Ok(None);
        }
        let snapshot = self.snapshot(commit);
        Ok(Some(Found {
            path: match &selection {
                Selection::Directory(_) => snapshot,
                Selection::Gguf(path) => snapshot.join(path),
            },
            format: selection.format(),
            bytes: selection.files().iter().map(|path| here[path]).sum(),
        }))
    }

    /// Without a listing: what loading cannot do without.
    fn seems_whole(
        &self,
        commit: &str,
        selection: &Selection,
        here: &BTreeMap<String, u64>,
    ) -> bool {
        let Selection::Directory(_) = selection else {
            return true;
        };
        let tokenizer = |path: &String| {
            path == "tokenizer.json"
                || path == "tokenizer.model"
                || path.ends_with(".tiktoken")
        };
        if !here.contains_key("config.json") || !here.keys().any(tokenizer) {
            return false;
        }
        let index = "model.safetensors.index.json";
        if !here.contains_key(index) {
            return selection
                .files()
                .iter()
                .filter_map(|path| all_shards(path))
                .all(|mut shards| shards.all(|it| here.contains_key(&it)));
        }
        let Ok(text) = fs::read(self.snapshot(commit).join(index)) else {
            return false;
        };
        shards(&text).is_some_and(|shards| {
            shards.iter().all(|shard| here.contains_key(shard))
        })
    }

    /// Puts a blob under its path into a snapshot.
    pub fn link(&self, commit: &str, path: &str, etag: &str) -> Result<()> {
        let pointer = self.snapshot(commit).join(path);
        let blob = self.blob(etag);
        make_folder_of(&pointer)?;
        let up = "../".repeat(path.split('/').count() + 1);
        let temporary = temporary_beside(&pointer);
        let target = format!("{up}blobs/{etag}");
        match std::os::unix::fs::symlink(target, &temporary) {
            Ok(()) => put_in_place(&temporary, &pointer),
            // A file system without links holds the file itself, as
            // huggingface_hub does there.
            Err(error) if means_no_links(&error) => fs::rename(&blob, &pointer),
            Err(error) => Err(error),
        }
        .map_err(|e| io_error(&e, &pointer))
    }

    /// Waits until no other process writes this blob.
    pub fn lock(&self, etag: &str, tick: Tick) -> Result<Lock> {
        let path = self.locks.join(format!("{etag}.lock"));
        make_folder_of(&path)?;
        let file = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(|e| io_error(&e, &path))?;
        loop {
            // SAFETY: the descriptor is open.
            let taken = unsafe {
                libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB)
            };
            if taken == 0 {
                return Ok(Lock { _file: file });
            }
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EWOULDBLOCK | libc::EINTR) => {}
                _ => return Err(io_error(&error, &path)),
            }
            if !tick() {
                return Err(cancelled());
            }
            std::thread::sleep(TICK);
        }
    }
}

pub fn cancelled() -> Error {
    Error::new(
        Code::Cancelled,
        "the download was stopped; the next one goes on where it ended",
    )
}

fn means_no_links(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EPERM | libc::ENOTSUP | libc::ENOSYS)
    )
}

fn walk(
    folder: &Path,
    prefix: &str,
    depth: usize,
    files: &mut BTreeMap<String, u64>,
) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let path = format!("{prefix}{name}");
        match fs::metadata(entry.path()) {
            Ok(data) if data.is_file() => {
                files.insert(path, data.len());
            }
            Ok(data) if data.is_dir() && depth > 0 => {
                walk(&entry.path(), &format!("{path}/"), depth - 1, files);
            }
            _ => {}
        }
    }
}

/// The names of a model's weights, from that of one: model-00001-of-00002 is
/// one of two. None for a name without numbers.
fn all_shards(path: &str) -> Option<impl Iterator<Item = String> + '_> {
    const ENDING: &str = ".safetensors";
    let (rest, count) = path.strip_suffix(ENDING)?.rsplit_once("-of-")?;
    let (name, number) = rest.rsplit_once('-')?;
    let all_digits = |text: &str| {
        text.len() == 5 && text.bytes().all(|b| b.is_ascii_digit())
    };
    if !all_digits(number) || !all_digits(count) {
        return None;
    }
    let last: u32 = count.parse().ok()?;
    Some(
        (1..=last)
            .map(move |one| format!("{name}-{one:05}-of-{count}{ENDING}")),
    )
}

fn shards(index: &[u8]) -> Option<BTreeSet<String>> {
    #[derive(serde::Deserialize)]
    struct Index {
        weight_map: BTreeMap<String, String>,
    }
    let index: Index = serde_json::from_slice(index).ok()?;
    Some(index.weight_map.into_values().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::testing::Folder;

    fn commit() -> String {
        "0123456789".repeat(4)
    }

    struct Fixture {
        _folder: Folder,
        repository: Repository,
    }

    impl Fixture {
        fn new(files: &[&str]) -> Self {
            let folder = Folder::new();
            let repository = Repository::new(folder.path(), "o/n");
            let fixture = Self {
                _folder: folder,
                repository,
            };
            files.iter().for_each(|path| fixture.add(path, path));
            fixture
        }

        /// A file whose etag is its path.
        fn add(&self, path: &str, text: &str) {
            let etag = path.replace('/', "_");
            let blob = self.repository.blob(&etag);
            make_folder_of(&blob).unwrap();
            fs::write(blob, text).unwrap();
            self.repository.link(&commit(), path, &etag).unwrap();
        }

        fn find(&self, name: &str) -> Option<Found> {
            let name = Name::parse(name).unwrap();
            self.repository.find(&commit(), &name).unwrap()
        }
    }

    const WHOLE: [&str; 3] =
        ["config.json", "model.safetensors", "tokenizer.json"];

    #[test]
    fn links_lead_to_blobs_from_any_depth() {
        let fixture = Fixture::new(&["a.json", "b/c/d.json"]);
        let snapshot = fixture.repository.snapshot(&commit());
        for path in ["a.json", "b/c/d.json"] {
            let text = fs::read_to_string(snapshot.join(path)).unwrap();
            assert_eq!(text, path);
            assert!(snapshot.join(path).is_symlink());
        }
        let here = fixture.repository.files_here(&commit());
        assert_eq!(here.keys().collect::<Vec<_>>(), ["a.json", "b/c/d.json"]);
    }

    #[test]
    fn without_a_listing_a_model_needs_config_tokenizer_and_weights() {
        let whole = Fixture::new(&WHOLE);
        let found = whole.find("o/n").unwrap();
        assert_eq!(found.path, whole.repository.snapshot(&commit()));
        let bytes = WHOLE.iter().map(|file| file.len() as u64);
        assert_eq!(found.bytes, bytes.sum::<u64>());
        for left_out in 0..3 {
            let mut files = WHOLE.to_vec();
            files.remove(left_out);
            assert!(Fixture::new(&files).find("o/n").is_none(), "{files:?}");
        }
    }

    #[test]
    fn an_index_names_the_shards_that_are_needed() {
        let fixture = Fixture::new(&WHOLE);
        fixture.add(
            "model.safetensors.index.json",
            r#"{"weight_map": {"a": "model.safetensors", "b": "model-2.safetensors"}}"#,
        );
        assert!(fixture.find("o/n").is_none());
        fixture.add("model-2.safetensors", "x");
        assert!(fixture.find("o/n").is_some());
    }

    #[test]
    fn without_an_index_numbers_name_the_shards_that_are_needed() {
        let fixture = Fixture::new(&[
            "config.json",
            "model-00001-of-00002.safetensors",
            "tokenizer.json",
        ]);
        assert!(fixture.find("o/n").is_none());
        fixture.add("model-00002-of-00002.safetensors", "x");
        assert!(fixture.find("o/n").is_some());
        assert!(all_shards("model-1-of-2.safetensors").is_none());
        assert!(all_shards("model.safetensors").is_none());
    }

    #[test]
    fn a_blob_stays_where_no_link_can_be_made() {
        let fixture = Fixture::new(&[]);
        let repository = &fixture.repository;
        let blob = repository.blob("e");
        make_folder_of(&blob).unwrap();
        fs::write(&blob, "the only copy").unwrap();
        // A folder is in the pointer's place.
        let snapshot = repository.snapshot(&commit());
        fs::create_dir_all(snapshot.join("a.json/b")).unwrap();
        let error = repository.link(&commit(), "a.json", "e").unwrap_err();
        assert!(error.message.contains("a.json"), "{error}");
        assert_eq!(fs::read_to_string(&blob).unwrap(), "the only copy");
        // No name is long enough for this one's temporary.
        let long = "n".repeat(250);
        assert!(repository.link(&commit(), &long, "e").is_err());
        assert_eq!(fs::read_to_string(&blob).unwrap(), "the only copy");
        assert_eq!(fs::read_dir(snapshot).unwrap().count(), 1);
    }

    #[test]
    fn only_what_tells_of_a_file_system_without_links_moves_a_blob() {
        let means =
            |number| means_no_links(&io::Error::from_raw_os_error(number));
        assert!(means(libc::EPERM) && means(libc::ENOSYS));
        assert!(!means(libc::EEXIST) && !means(libc::ENOSPC));
    }

    #[test]
    fn a_listing_says_what_is_needed() {
        let fixture = Fixture::new(&["config.json", "model.safetensors"]);
        let tree = |size: usize| {
            format!(
                r#"{{"format_version": 1, "files": {{
                  "config.json": {{"size": 11, "blob_id": "x"}},
                  "README.md": {{"size": 1, "blob_id": "x"}},
                  "model.safetensors": {{"size": {size}, "blob_id": "x"}}}}}}"#
            )
        };
        let repository = &fixture.repository;
        repository.write_tree(&commit(), &tree(17)).unwrap();
        assert!(fixture.find("o/n").is_some());
        repository.write_tree(&commit(), &tree(18)).unwrap();
        assert!(fixture.find("o/n").is_none());
    }

    #[test]
    fn ggufs_are_found_by_their_part() {
        let fixture = Fixture::new(&["m-Q4_0.gguf"]);
        let found = fixture.find("o/n").unwrap();
        assert!(found.path.ends_with("m-Q4_0.gguf"));
        assert!(fixture.find("o/n:q8_0").is_none());
        fixture.add("m-Q8_0.gguf", "x");
        assert!(fixture.find("o/n:q8_0").is_some());
        let name = Name::parse("o/n").unwrap();
        let error = fixture.repository.find(&commit(), &name).unwrap_err();
        assert!(error.message.contains("o/n:m-Q8_0.gguf"), "{error}");
    }

    #[test]
    fn a_ref_is_replaced_and_a_bad_one_ignored() {
        let fixture = Fixture::new(&[]);
        let repository = &fixture.repository;
        assert_eq!(repository.commit_of("main"), None);
        repository.write_ref("main", &commit()).unwrap();
        assert_eq!(repository.commit_of("main"), Some(commit()));
        let other = "ab".repeat(20);
        repository.write_ref("main", &other).unwrap();
        assert_eq!(repository.commit_of("main"), Some(other));
        fs::write(repository.root.join("refs/main"), "../x").unwrap();
        assert_eq!(repository.commit_of("main"), None);
        assert_eq!(repository.commit_of("../../x"), None);
    }

    #[test]
    fn one_holds_a_lock_and_waiting_for_it_can_be_given_up() {
        let fixture = Fixture::new(&[]);
        let repository = &fixture.repository;
        let held = repository.lock("e", &mut || true).unwrap();
        let mut ticks = 0;
        let error = repository.lock("e", &mut || {
            ticks += 1;
            ticks < 3
        });
        assert_eq!(error.err().unwrap().code, Code::Cancelled);
        assert_eq!(ticks, 3);
        drop(held);
        assert!(repository.lock("e", &mut || false).is_ok());
    }
}
