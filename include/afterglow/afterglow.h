#pragma once

// Everything of the library: load, generate, stream_generate, generate_step,
// save_cache, load_cache.
#include "afterglow/cache_history.h"  // IWYU pragma: export
#include "afterglow/error.h"          // IWYU pragma: export
#include "afterglow/generate.h"       // IWYU pragma: export
#include "afterglow/model.h"          // IWYU pragma: export
#include "afterglow/sampling.h"       // IWYU pragma: export
#include "afterglow/types.h"          // IWYU pragma: export
