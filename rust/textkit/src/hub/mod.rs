//! Models from the Hugging Face hub, kept in the cache that the Python package
//! huggingface_hub shares.

mod cache;
mod digest;
mod download;
mod files;
mod http;
mod installed;
mod listing;
mod name;
mod refusal;
mod select;
mod settings;
#[cfg(test)]
mod testing;

use cache::{cancelled, Repository};
pub use download::Report;
use download::{Download, Progress};
use files::{check_space, make_folder_of};
use http::{Client, Failure};
pub use installed::{installed, Installed};
use listing::{tree_json, File, Listing};
use name::{check_revision, Name};
use refusal::refusal;
use select::{select, Selection};
pub use settings::Settings;

use crate::error::{Code, Error, Result};

const MOST_LISTING: usize = 64 << 20; // bytes
const RELATIVE_REDIRECTS: usize = 5;

/// Which model is wanted.
pub struct Request<'a> {
    /// organization/name, or organization/name:part for a GGUF file.
    pub name: &'a str,
    /// A branch, tag or commit.
    pub revision: &'a str,
    /// Ask the hub even when the model is here as a whole.
    pub refresh: bool,
    /// Never ask the hub.
    pub local_only: bool,
}

/// The path of a model's folder or GGUF file, downloaded where it must be.
pub fn fetch(
    settings: &Settings,
    request: &Request,
    report: Report,
) -> Result<String> {
    let name = Name::parse(request.name)?;
    check_revision(request.revision)?;
    let repository = Repository::new(&settings.cache, &name.repository);
    let local_only = request.local_only || settings.offline;
    if !request.refresh || local_only {
        if let Some(path) = here(&repository, &name, request.revision)? {
            return Ok(path);
        }
    }
    if local_only {
        return Err(not_here(&name, settings));
    }
    let fetch = Fetch {
        settings,
        repository,
        client: Client::new(settings)?,
        name,
        revision: request.revision,
    };
    fetch.download(&mut Progress::new(report))
}

fn here(
    repository: &Repository,
    name: &Name,
    revision: &str,
) -> Result<Option<String>> {
    let Some(commit) = repository.commit_of(revision) else {
        return Ok(None);
    };
    let found = repository.find(&commit, name)?;
    Ok(found.map(|found| found.path.display().to_string()))
}

fn not_here(name: &Name, settings: &Settings) -> Error {
    let why = match settings.offline {
        true => ", and HF_HUB_OFFLINE forbids to download it",
        false => "",
    };
    Error::new(
        Code::NotFound,
        format!(
            "{} is not in {}, or not as a whole{why}",
            name.text(),
            settings.cache.display()
        ),
    )
}

struct Fetch<'a> {
    settings: &'a Settings,
    repository: Repository,
    client: Client,
    name: Name,
    revision: &'a str,
}

impl Fetch<'_> {
    fn download(&self, progress: &mut Progress) -> Result<String> {
        let mut listing = self.list(progress)?;
        let paths: Vec<&str> =
            listing.files.keys().map(String::as_str).collect();
        let selection = select(&self.name, &paths)?;
        let commit = listing.commit.clone();
        for path in selection.files() {
            if listing.files[path].is_none() {
                let file = self.ask_about(&commit, path, progress)?;
                listing.files.insert(path.clone(), Some(file));
            }
        }
        let files: Vec<(&str, &File)> = selection
            .files()
            .iter()
            .filter_map(|path| {
                Some((path.as_str(), listing.files[path].as_ref()?))
            })
            .collect();
        self.check_space(&files)?;
        // With the listing there, this cache knows what it does not have yet.
        if let Some(json) = tree_json(&listing) {
            self.repository.write_tree(&commit, &json)?;
        }
        progress.expect(files.iter().map(|(_, file)| file.size).sum());
        let (here, missing): (Vec<_>, Vec<_>) = files
            .into_iter()
            .partition(|(path, file)| self.is_here(&commit, path, file));
        for (path, file) in here {
            self.put(&commit, path, file)?;
            progress.end(file.size);
        }
        for (path, file) in missing {
            self.bring(&commit, path, file, progress)?;
        }
        self.repository.write_ref(self.revision, &commit)?;
        let snapshot = self.repository.snapshot(&commit);
        let path = match selection {
            Selection::Directory(_) => snapshot,
            Selection::Gguf(path) => snapshot.join(path),
        };
        Ok(path.display().to_string())
    }

    fn bring(
        &self,
        commit: &str,
        path: &str,
        file: &File,
        progress: &mut Progress,
    ) -> Result<()> {
        let download = Download {
            client: &self.client,
            repository: &self.repository,
            name: &self.name.repository,
            url: self.file_url(commit, path),
            path,
            file,
        };
        download.run(progress)?;
        self.put(commit, path, file)?;
        progress.end(file.size);
        if progress.tick() {
            Ok(())
        } else {
            Err(cancelled())
        }
    }

    fn is_here(&self, commit: &str, path: &str, file: &File) -> bool {
        self.is_put(commit, path, file) || self.repository.has_blob(file)
    }

    fn is_put(&self, commit: &str, path: &str, file: &File) -> bool {
        std::fs::metadata(self.repository.snapshot(commit).join(path))
            .is_ok_and(|data| data.len() == file.size)
    }

    /// Puts a blob that is here into its place in the snapshot.
    fn put(&self, commit: &str, path: &str, file: &File) -> Result<()> {
        if self.is_put(commit, path, file) {
            return Ok(());
        }
        self.repository.link(commit, path, &file.etag)
    }

    fn file_url(&self, commit: &str, path: &str) -> String {
        format!(
            "{}/{}/resolve/{commit}/{}",
            self.settings.endpoint,
            self.name.repository,
            escaped(path, true)
        )
    }

    fn list(&self, progress: &mut Progress) -> Result<Listing> {
        let repository = &self.name.repository;
        let url = format!(
            "{}/api/models/{repository}/revision/{}?blobs=true",
            self.settings.endpoint,
            escaped(self.revision, false)
        );
        let tick = &mut || progress.tick();
        let mut answer = self
            .client
            .get(&url, 0, tick)
            .map_err(|failure| self.failed(failure))?;
        if answer.status != 200 {
            let what = format!("its revision '{}'", self.revision);
            let token = self.client.token();
            return Err(refusal(&answer, token, repository, &what, &url));
        }
        let json = answer
            .read_all(MOST_LISTING, tick)
            .map_err(|failure| self.failed(failure))?;
        Listing::parse(&json).map_err(|mut error| {
            error.message = format!("{url}: {}", error.message);
            error
        })
    }

    /// For hubs whose listing names no sizes and sums.
    fn ask_about(
        &self,
        commit: &str,
        path: &str,
        progress: &mut Progress,
    ) -> Result<File> {
        let mut url = self.file_url(commit, path);
        for _ in 0..RELATIVE_REDIRECTS {
            let answer = self
                .client
                .head(&url, &mut || progress.tick())
                .map_err(|failure| self.failed(failure))?;
            let linked = answer.header("x-linked-etag");
            let location = answer.header("location").unwrap_or_default();
            let redirected = (300..400).contains(&answer.status);
            if redirected && linked.is_none() && location.starts_with('/') {
                url = format!("{}{location}", self.settings.endpoint);
                continue;
            }
            if answer.status >= 400 {
                let repository = &self.name.repository;
                let what = format!("{path} of {repository}");
                let token = self.client.token();
                return Err(refusal(&answer, token, repository, &what, &url));
            }
            let etag = linked.or(answer.header("etag")).unwrap_or_default();
            let etag = etag.trim_start_matches("W/").trim_matches('"');
            let size = answer
                .header("x-linked-size")
                .or(answer.header("content-length"))
                .and_then(|size| size.parse().ok());
            let file = size.and_then(|size| File::checked(size, etag));
            return file.ok_or_else(|| {
                Error::corrupt(format!("{url}: the answer has no size or etag"))
            });
        }
        Err(Error::corrupt(format!("{url}: redirected too often")))
    }

    fn check_space(&self, files: &[(&str, &File)]) -> Result<()> {
        let missing = files.iter().map(|(_, file)| {
            if self.repository.has_blob(file) {
                return 0;
            }
            let partial = self.repository.partial(&file.etag);
            let there = std::fs::metadata(partial).map_or(0, |data| data.len());
            file.size.saturating_sub(there)
        });
        let missing = missing.sum();
        make_folder_of(&self.repository.root.join("blobs"))?;
        check_space(&self.repository.root, missing)
    }

    fn failed(&self, failure: Failure) -> Error {
        match failure {
            Failure::Cancelled => cancelled(),
            Failure::Network(why) => Error::new(
                Code::Unavailable,
                format!(
                    "{} cannot be asked for {}: {why}. Check the network, \
                     HTTPS_PROXY and HF_ENDPOINT, or name a model that is \
                     here (afterglow models)",
                    self.settings.endpoint,
                    self.name.text()
                ),
            ),
        }
    }
}

/// Percent-encodes for a URL's path.
fn escaped(text: &str, slashes: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        let plain = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        if plain || (slashes && byte == b'/') {
            out.push(byte.into());
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_escaped() {
        assert_eq!(escaped("a b/ü.json", true), "a%20b/%C3%BC.json");
        assert_eq!(escaped("refs/pr/1", false), "refs%2Fpr%2F1");
    }
}
