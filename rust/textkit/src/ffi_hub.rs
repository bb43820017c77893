//! The hub's part of the C ABI of textkit.h.

use std::ffi::c_void;

use crate::error::Error;
use crate::ffi::{boxed, free, guard, quiet, TkBuffer, TkView};
use crate::hub::{fetch, installed, Installed, Request, Settings};

pub type TkHubReport = unsafe extern "C" fn(
    context: *mut c_void,
    file: TkView,
    done: u64,
    total: u64,
) -> bool;

#[repr(C)]
pub struct TkHubModel {
    name: TkView,
    path: TkView,
    revision: TkView,
    format: TkView,
    bytes: u64,
    complete: bool,
}

#[no_mangle]
pub unsafe extern "C" fn tk_hub_fetch(
    name: TkView,
    revision: TkView,
    refresh: bool,
    local_only: bool,
    report: TkHubReport,
    context: *mut c_void,
    out: *mut TkBuffer,
    error: *mut TkBuffer,
) -> i32 {
    guard(out, error, || {
        let request = Request {
            name: name.text("the model's name")?,
            revision: revision.text("the revision")?,
            refresh,
            local_only,
        };
        let mut tell = |file: &str, done, total| {
            report(context, TkView::of(file.as_bytes()), done, total)
        };
        fetch(&Settings::from_environment(), &request, &mut tell)
            .map(TkBuffer::give)
    })
}

#[no_mangle]
pub unsafe extern "C" fn tk_hub_cache(
    out: *mut TkBuffer,
    error: *mut TkBuffer,
) -> i32 {
    guard(out, error, || {
        let path = Settings::from_environment().cache.into_os_string();
        path.into_string().map(TkBuffer::give).map_err(|path| {
            Error::invalid(format!("{path:?}: the cache's path is not UTF-8"))
        })
    })
}

#[no_mangle]
pub unsafe extern "C" fn tk_hub_installed(
    out: *mut *mut Vec<Installed>,
    error: *mut TkBuffer,
) -> i32 {
    guard(out, error, || {
        installed(&Settings::from_environment().cache).map(boxed)
    })
}

#[no_mangle]
pub unsafe extern "C" fn tk_hub_models_free(models: *mut Vec<Installed>) {
    free(models);
}

#[no_mangle]
pub unsafe extern "C" fn tk_hub_models_size(
    models: *const Vec<Installed>,
) -> usize {
    (*models).len()
}

#[no_mangle]
pub unsafe extern "C" fn tk_hub_models_at(
    models: *const Vec<Installed>,
    index: usize,
) -> TkHubModel {
    let empty = || TkView::of(&[]);
    let neutral = TkHubModel {
        name: empty(),
        path: empty(),
        revision: empty(),
        format: empty(),
        bytes: 0,
        complete: false,
    };
    quiet(neutral, || {
        let model = &(&*models)[index];
        TkHubModel {
            name: TkView::of(model.name.as_bytes()),
            path: TkView::of(model.path.as_bytes()),
            revision: TkView::of(model.revision.as_bytes()),
            format: TkView::of(model.format.as_bytes()),
            bytes: model.bytes,
            complete: model.complete,
        }
    })
}
