#pragma once

#include <span>

#include "cli/bench/restore_speed.h"
#include "cli/bench/speed.h"

namespace afterglow {

// What `afterglow bench` prints on standard output: tables for people, or
// JSON arrays of one object a test.

void print_table(std::span<const SpeedReport> reports);
/// Where the time went, kernel by kernel, for each test that has a profile.
void print_profiles(std::span<const SpeedReport> reports);
void print_json(std::span<const SpeedReport> reports);

void print_table(const RestoreBenchReport& report);
void print_json(const RestoreBenchReport& report);

}  // namespace afterglow
