//! One file from the hub into the cache.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::cache::{cancelled, Repository};
use super::digest::Digest;
use super::files::{io_error, make_folder_of};
use super::http::{Client, Failure};
use super::listing::File;
use super::refusal::refusal;
use crate::error::{Code, Error, Result};

/// How often in a row an attempt may bring nothing new.
const PATIENCE: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const TICK: Duration = Duration::from_millis(50);
const CHUNK: usize = 1 << 20;

/// Is told the file, and the bytes of all files so far and in all, several
/// times a second; false stops the download.
pub type Report<'a> = &'a mut dyn FnMut(&str, u64, u64) -> bool;

/// What is told while files are downloaded.
pub struct Progress<'a> {
    report: Report<'a>,
    file: String,
    before: u64, // bytes of the files before this one
    current: u64,
    total: u64,
}

impl<'a> Progress<'a> {
    pub fn new(report: Report<'a>) -> Self {
        Self {
            report,
            file: String::new(),
            before: 0,
            current: 0,
            total: 0,
        }
    }

    pub fn expect(&mut self, total: u64) {
        self.total = total;
    }

    fn begin(&mut self, file: &str, there: u64) {
        self.file = file.to_owned();
        self.current = there;
    }

    pub fn end(&mut self, size: u64) {
        self.before += size;
        self.current = 0;
    }

    pub fn tick(&mut self) -> bool {
        let done = self.before + self.current;
        (self.report)(&self.file, done, self.total)
    }
}

pub struct Download<'a> {
    pub client: &'a Client,
    pub repository: &'a Repository,
    /// The repository's name, for messages.
    pub name: &'a str,
    pub url: String,
    pub path: &'a str,
    pub file: &'a File,
}

enum Stop {
    /// Another attempt may do better.
    Passing(String),
    Final(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Final(error)
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Cancelled => Self::Final(cancelled()),
            Failure::Network(why) => Self::Passing(why),
        }
    }
}

impl Download<'_> {
    /// Brings the blob into the cache; what an earlier attempt left is
    /// continued. The blob appears when it is whole and has the right sum.
    pub fn run(&self, progress: &mut Progress) -> Result<()> {
        let etag = &self.file.etag;
        let path = self.repository.partial(etag);
        let there = fs::metadata(&path).map_or(0, |data| data.len());
        progress.begin(self.path, there.min(self.file.size));
        let _lock = self.repository.lock(etag, &mut || progress.tick())?;
        if self.repository.has_blob(self.file) {
            return Ok(());
        }
        let mut partial = Partial::open(path, self.file, progress)?;
        self.fill(&mut partial, progress)?;
        if !partial.agrees(etag) {
            // Perhaps what an earlier attempt had left was wrong.
            if partial.kept == 0 {
                return Err(self.wrong_sum(&partial));
            }
            partial.restart(self.file)?;
            self.fill(&mut partial, progress)?;
            if !partial.agrees(etag) {
                return Err(self.wrong_sum(&partial));
            }
        }
        partial.put(&self.repository.blob(etag), self.file.size)
    }

    fn wrong_sum(&self, partial: &Partial) -> Error {
        let _ = fs::remove_file(&partial.path);
        Error::corrupt(format!(
            "{}: {} came with other bytes than the hub's sum {} names, and \
             was thrown away; try again, and distrust the way to {}",
            self.name, self.path, self.file.etag, self.url
        ))
    }

    fn fill(
        &self,
        partial: &mut Partial,
        progress: &mut Progress,
    ) -> Result<()> {
        let mut longest = partial.size;
        let mut in_vain = 0;
        loop {
            progress.current = partial.size;
            let why = match self.attempt(partial, progress) {
                Ok(()) => return Ok(()),
                Err(Stop::Final(error)) => return Err(error),
                Err(Stop::Passing(why)) => why,
            };
            in_vain = if partial.size > longest {
                0
            } else {
                in_vain + 1
            };
            longest = longest.max(partial.size);
            if in_vain > PATIENCE {
                return Err(Error::new(
                    Code::Unavailable,
                    format!(
                        "{}: {} broke off after {} of {} bytes: {why}. They \
                         are kept: the next download goes on from there",
                        self.name, self.path, partial.size, self.file.size
                    ),
                ));
            }
            let exponent = in_vain.saturating_sub(1);
            pause(FIRST_PAUSE * 2u32.pow(exponent), progress)?;
        }
    }

    fn attempt(
        &self,
        partial: &mut Partial,
        progress: &mut Progress,
    ) -> std::result::Result<(), Stop> {
        let from = partial.size;
        if from == self.file.size {
            return Ok(());
        }
        let mut answer =
            self.client.get(&self.url, from, &mut || progress.tick())?;
        match answer.status {
            200 if from == 0 => {}
            // Ranges are not known there.
            200 => partial.restart(self.file)?,
            206 if starts_at(answer.header("content-range"), from) => {}
            206 | 416 if from > 0 => {
                partial.restart(self.file)?;
                return Err(Stop::Passing("another range came".to_owned()));
            }
            408 | 429 | 500..=599 => {
                let status = answer.status;
                return Err(Stop::Passing(format!("HTTP status {status}")));
            }
            _ => {
                let what = format!("{} of {}", self.path, self.name);
                return Err(Stop::Final(refusal(
                    &answer,
                    self.client.token(),
                    self.name,
                    &what,
                    &self.url,
                )));
            }
        }
        while let Some(bytes) = answer.read(&mut || progress.tick())? {
            if partial.size + bytes.len() as u64 > self.file.size {
                let _ = fs::remove_file(&partial.path);
                return Err(Stop::Final(Error::corrupt(format!(
                    "{}: {} is longer than the {} bytes that the hub told",
                    self.name, self.path, self.file.size
                ))));
            }
            partial.append(&bytes)?;
            progress.current = partial.size;
        }
        if partial.size < self.file.size {
            return Err(Stop::Passing("the answer ended early".to_owned()));
        }
        Ok(())
    }
}

fn pause(time: Duration, progress: &mut Progress) -> Result<()> {
    let end = Instant::now() + time;
    while Instant::now() < end {
        if !progress.tick() {
            return Err(cancelled());
        }
        std::thread::sleep(TICK);
    }
    Ok(())
}

/// Content-Range: bytes 100-199/200
fn starts_at(range: Option<&str>, from: u64) -> bool {
    let start = range
        .and_then(|range| range.trim().strip_prefix("bytes "))
        .and_then(|range| range.split('-').next());
    start.and_then(|start| start.parse().ok()) == Some(from)
}

/// A blob that grows.
struct Partial {
    path: PathBuf,
    file: fs::File,
    size: u64,
    /// Bytes that were there before.
    kept: u64,
    digest: Digest,
}

impl Partial {
    /// Reads what is there, for the sum.
    fn open(
        path: PathBuf,
        wanted: &File,
        progress: &mut Progress,
    ) -> Result<Self> {
        make_folder_of(&path)?;
        let open = || {
            fs::OpenOptions::new()
                .read(true)
                .append(true)
                .create(true)
                .open(&path)
        };
        let mut file = open().map_err(|e| io_error(&e, &path))?;
        let mut digest = Digest::of(&wanted.etag, wanted.size);
        let mut size = 0;
        let mut bytes = vec![0; CHUNK];
        loop {
            let count =
                file.read(&mut bytes).map_err(|e| io_error(&e, &path))?;
            if count == 0 {
                break;
            }
            digest.update(&bytes[..count]);
            size += count as u64;
            if !progress.tick() {
                return Err(cancelled());
            }
        }
        let mut partial = Self {
            path,
            file,
            size,
            kept: size,
            digest,
        };
        if size > wanted.size {
            partial.restart(wanted)?;
        }
        Ok(partial)
    }

    fn restart(&mut self, wanted: &File) -> Result<()> {
        self.file.set_len(0).map_err(|e| io_error(&e, &self.path))?;
        self.digest = Digest::of(&wanted.etag, wanted.size);
        self.size = 0;
        self.kept = 0;
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file
            .write_all(bytes)
            .map_err(|e| io_error(&e, &self.path))?;
        self.digest.update(bytes);
        self.size += bytes.len() as u64;
        Ok(())
    }

    fn agrees(&mut self, etag: &str) -> bool {
        let digest =
            std::mem::replace(&mut self.digest, Digest::of(etag, self.size));
        digest.agrees(etag)
    }

    /// Errors: Corrupt where others wrote to it, too: some file systems let
    /// several hold its lock, and the sum is that of this process's bytes.
    fn put(self, blob: &Path, size: u64) -> Result<()> {
        let data = self.file.metadata();
        let there = data.map_err(|e| io_error(&e, &self.path))?.len();
        if there != size {
            let _ = fs::remove_file(&self.path);
            return Err(Error::corrupt(format!(
                "{}: another process wrote to it at the same time; it has \
                 {there} bytes instead of {size}, and was thrown away. Let \
                 one download end before the next begins",
                self.path.display()
            )));
        }
        let synced = self.file.sync_all();
        synced
            .and_then(|()| fs::rename(&self.path, blob))
            .map_err(|e| io_error(&e, &self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::testing::Folder;

    #[test]
    fn a_range_must_start_where_it_was_asked_for() {
        assert!(starts_at(Some("bytes 100-199/200"), 100));
        assert!(!starts_at(Some("bytes 0-199/200"), 100));
        assert!(!starts_at(Some("bytes */200"), 100));
        assert!(!starts_at(None, 100));
    }

    #[test]
    fn what_two_wrote_at_once_is_not_put_in_place() {
        let folder = Folder::new();
        let path = folder.path().join("e.incomplete");
        let blob = folder.path().join("e");
        let wanted = File::checked(4, "e").unwrap();
        let mut report = |_: &str, _: u64, _: u64| true;
        let mut progress = Progress::new(&mut report);
        let mut open =
            || Partial::open(path.clone(), &wanted, &mut progress).unwrap();
        let (mut one, mut other) = (open(), open());
        one.append(b"ab").unwrap();
        other.append(b"ab").unwrap();
        one.append(b"cd").unwrap();
        let error = one.put(&blob, wanted.size).unwrap_err();
        assert_eq!(error.code, Code::Corrupt);
        assert!(error.message.contains("6 bytes"), "{error}");
        assert!(!blob.exists() && !path.exists());
    }
}
