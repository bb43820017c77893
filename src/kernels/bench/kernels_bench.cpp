// What each kernel reaches on this machine, for each instruction set it can
// run, beside memory speed and peak arithmetic measured in the same run.
//
//   kernels_bench [--threads=N] [Google Benchmark's flags]
//   kernels_bench --benchmark_filter=avx2/linear_int

#include <benchmark/benchmark.h>

#include <charconv>
#include <cstdio>
#include <cstring>

#include "kernels/bench/suite.h"

namespace {

/// Takes --threads=N out of the arguments; 0: it is wrong.
int take_threads(int& argc, char** argv) {
  constexpr char kFlag[] = "--threads=";
  int threads = 1;
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], kFlag, sizeof kFlag - 1) != 0) continue;
    const char* text = argv[i] + sizeof kFlag - 1;
    const char* end = text + std::strlen(text);
    const auto parsed = std::from_chars(text, end, threads);
    if (parsed.ec != std::errc{} || parsed.ptr != end || threads > 1024) {
      return 0;
    }
    std::copy(argv + i + 1, argv + argc, argv + i);
    --argc;
    return threads;
  }
  return threads;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace afterglow::bench;
  const int threads = take_threads(argc, argv);
  if (threads < 1) {
    std::fprintf(stderr, "kernels_bench: --threads wants 1 to 1024\n");
    return 2;
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  Suite suite(threads);
  suite.print_limits();
  add_elementwise(suite);
  add_rows(suite);
  add_linear(suite);
  add_attention(suite);
  add_sampling(suite);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
