//! Files and folders of the cache: put in place as wholes, with errors that
//! say what to do.

use std::ffi::CString;
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{io_in_words, Code, Error, Result};

/// Errors: NoSpace where so many bytes more have no place beside `path`.
pub fn check_space(path: &Path, bytes: u64) -> Result<()> {
    let Ok(name) = CString::new(path.as_os_str().as_bytes()) else {
        return Ok(());
    };
    let mut stats: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: name ends with NUL, stats is writable.
    if unsafe { libc::statvfs(name.as_ptr(), &mut stats) } != 0 {
        return Ok(());
    }
    #[allow(clippy::unnecessary_cast)] // their types differ between systems
    let free = (stats.f_bavail as u64).saturating_mul(stats.f_frsize as u64);
    if free >= bytes {
        return Ok(());
    }
    Err(Error::new(
        Code::NoSpace,
        format!(
            "{}: the download needs {bytes} bytes and {free} are free. Free \
             some, or let HF_HOME name a folder on a larger disk",
            path.display()
        ),
    ))
}

pub fn io_error(error: &io::Error, path: &Path) -> Error {
    let (code, advice) = match error.raw_os_error() {
        Some(libc::ENOSPC | libc::EDQUOT) => (
            Code::NoSpace,
            "; free some space, or let HF_HOME name a folder on a larger \
             disk. The next download goes on where this one ended",
        ),
        Some(libc::EACCES | libc::EPERM | libc::EROFS) => (
            Code::Permission,
            "; let HF_HOME name a folder that can be written",
        ),
        _ => (Code::Io, ""),
    };
    let why = io_in_words(error);
    Error::new(code, format!("{}: {why}{advice}", path.display()))
}

pub fn make_folder_of(path: &Path) -> Result<()> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).map_err(|e| io_error(&e, folder))
}

/// A name that no other thread uses; what a process of the same number left
/// there is removed.
pub fn temporary_beside(path: &Path) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let process = std::process::id();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let temporary =
        path.with_file_name(format!(".{name}.{process}-{count}.tmp"));
    let _ = fs::remove_file(&temporary);
    temporary
}

/// Renames; where that fails, nothing is left.
pub fn put_in_place(temporary: &Path, path: &Path) -> io::Result<()> {
    fs::rename(temporary, path).inspect_err(|_| {
        let _ = fs::remove_file(temporary);
    })
}

/// Readers see the old text or the new one, after a power cut, too.
pub fn replace_file(path: &Path, text: &str) -> Result<()> {
    make_folder_of(path)?;
    let temporary = temporary_beside(path);
    let written = fs::File::create(&temporary).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
        .and_then(|()| put_in_place(&temporary, path))
        .map_err(|e| io_error(&e, path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::testing::Folder;

    #[test]
    fn no_two_temporaries_are_one_and_a_failure_leaves_none() {
        let folder = Folder::new();
        let path = folder.path().join("a");
        assert_ne!(temporary_beside(&path), temporary_beside(&path));
        fs::create_dir_all(path.join("b")).unwrap();
        assert!(replace_file(&path, "text").is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn more_than_the_disk_holds_is_refused_beforehand() {
        let folder = Folder::new();
        assert!(check_space(folder.path(), 1).is_ok());
        let error = check_space(folder.path(), 1 << 60).unwrap_err();
        assert_eq!(error.code, Code::NoSpace);
        assert!(error.message.contains("HF_HOME"), "{error}");
    }

    #[test]
    fn disk_errors_say_what_to_do() {
        let cases = [
            (libc::ENOSPC, Code::NoSpace, "free some space"),
            (libc::EDQUOT, Code::NoSpace, "HF_HOME"),
            (libc::EROFS, Code::Permission, "HF_HOME"),
            (libc::EIO, Code::Io, "/a/b: "),
        ];
        for (number, code, text) in cases {
            let error = io::Error::from_raw_os_error(number);
            let error = io_error(&error, Path::new("/a/b"));
            assert_eq!(error.code, code);
            assert!(error.message.contains(text), "{error}");
        }
    }

    #[test]
    fn what_is_in_the_way_is_named() {
        let folder = Folder::new();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let error = make_folder_of(&file.join("a/b")).unwrap_err();
        assert_eq!(error.code, Code::Io);
        assert!(error.message.contains("file/a"), "{error}");
    }
}
