#pragma once

/// Marks what the shared library shows.
#define AFTERGLOW_API __attribute__((visibility("default")))
