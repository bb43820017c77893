#pragma once

#include <nanobind/nanobind.h>

#include "afterglow/cache_history.h"
#include "afterglow/model.h"
#include "owned.h"

namespace afterglow::python {

/// afterglow.Model.
struct ModelHandle {
  Owned<Model> model;
};

/// afterglow.CacheHistory.
struct HistoryHandle {
  Owned<CacheHistory> history;
};

void bind_errors(nanobind::module_& module);
void bind_model(nanobind::module_& module);
void bind_cache(nanobind::module_& module);
void bind_sampling(nanobind::module_& module);
void bind_text_stream(nanobind::module_& module);
void bind_logits_stream(nanobind::module_& module);

/// Ends all that models still do, and makes their prompt caches durable.
void close_models();
/// Leaves the models of a forked process's parent to the parent.
void forget_models();

}  // namespace afterglow::python
