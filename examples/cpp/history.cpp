// Reads a long prompt once: the second generation continues the first one's
// cache history, and so does every later start of the program, from a file.
//
//   history MODEL PROMPT-FILE CACHE-FILE
#include <afterglow/afterglow.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace {

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Prints the answer as it comes; returns what has been read and written.
afterglow::CacheHistory answer(
    const afterglow::Model& model,
    const std::string& prompt,
    std::optional<afterglow::CacheHistory> history
) {
  afterglow::GenerateOptions options;
  options.max_tokens = 40;
  options.return_cache = true;
  options.verbose = true;
  options.cache_history = history;

  const auto start = std::chrono::steady_clock::now();
  for (auto& step : afterglow::stream_generate(model, prompt, options)) {
    std::printf("%s", step.text.c_str());
    std::fflush(stdout);
    history = step.cache_history;
  }
  const std::chrono::duration<double> took =
      std::chrono::steady_clock::now() - start;
  std::printf("\n");
  std::fprintf(stderr, "Took %.3f s\n", took.count());
  return *history;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: history MODEL PROMPT-FILE CACHE-FILE\n");
    return 2;
  }
  const std::string prompt = read_file(argv[2]);
  const std::string cache_file = argv[3];
  try {
    const afterglow::Model model = afterglow::load(argv[1]);
    if (std::filesystem::exists(cache_file)) {
      const auto [history, metadata] = afterglow::load_cache(cache_file);
      answer(model, prompt, history);
    } else {
      const auto first = answer(model, prompt, {});
      const auto second = answer(model, prompt, first);
      afterglow::save_cache(
          cache_file, second, {{"model_id", model.info().name}}
      );
    }
  } catch (const afterglow::Exception& error) {
    std::fprintf(stderr, "history: %s\n", error.what());
    return 1;
  }
  return 0;
}
