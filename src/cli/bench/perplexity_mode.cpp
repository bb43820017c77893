#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "api/progress_bar.h"
#include "base/thread_pool.h"
#include "cli/bench/modes.h"
#include "cli/default_model.h"
#include "cli/report_error.h"
#include "cli/text_table.h"
#include "engine/tokenizer_source.h"
#include "model/divergence.h"
#include "model/model.h"
#include "model/text_file.h"

namespace afterglow {
namespace {

Result<std::vector<Token>> tokenize(
    const PerplexityFlags& flags, const TokenizerSource& source
) {
  auto text = read_text_file(flags.file);
  if (!text) return text.error();
  auto tokenizer = make_tokenizer(source);
  if (!tokenizer) return tokenizer.error();
  auto tokens = tokenizer->encode(*text, false, false);
  if (tokens && flags.most_tokens > 0) {
    tokens->resize(std::min(tokens->size(), flags.most_tokens));
  }
  return tokens;
}

std::string number(const char* format, double value) {
  char text[48];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

void print_table(const DivergenceReport& report) {
  std::printf(
      "%s: %zu positions in %zu windows; next-token distributions against "
      "f32 mode.\n\n",
      report.model_name.c_str(),
      report.positions,
      report.windows
  );
  TextTable table(
      {{"activations"},
       {"perplexity", true},
       {"change", true},
       {"mean KL", true},
       {"largest KL", true},
       {"same first", true}}
  );
  table.add({"f32", number("%.4f", report.exact.perplexity), "", "", "", ""});
  for (const ModeQuality& mode : report.modes) {
    table.add(
        {to_string(mode.mode),
         number("%.4f", mode.perplexity),
         number("%+.4f %%", 100 * mode.perplexity_change(report.exact)),
         number("%.2e", mode.mean_divergence),
         number("%.2e", mode.largest_divergence),
         number("%.2f %%", 100 * mode.same_first)}
    );
  }
  std::printf("%s", table.format().c_str());
}

void print_json(const DivergenceReport& report) {
  using json = nlohmann::ordered_json;
  json list = json::array();
  auto add = [&](const ModeQuality& mode) {
    list.push_back(
        {{"activations", to_string(mode.mode)},
         {"model", report.model_name},
         {"positions", report.positions},
         {"windows", report.windows},
         {"perplexity", mode.perplexity},
         {"perplexity_change", mode.perplexity_change(report.exact)},
         {"mean_divergence", mode.mean_divergence},
         {"largest_divergence", mode.largest_divergence},
         {"same_first", mode.same_first}}
    );
  };
  add(report.exact);
  for (const ModeQuality& mode : report.modes) add(mode);
  std::printf("%s\n", list.dump(2).c_str());
}

}  // namespace

int bench_perplexity(
    const PerplexityFlags& flags, const SpeedFlags& model, bool json
) {
  DivergenceOptions options{.window = flags.window};
  for (const Activations mode : model.activations) {
    if (mode != Activations::kF32) options.modes.push_back(mode);
  }
  options.threads = thread_count(model.threads.front());
  auto found = model_or_default(model.models.empty() ? "" : model.models[0]);
  if (!found) return report_error(found.error());
  options.model = *std::move(found);
  ProgressBar bar;
  auto report = measure_divergence(
      options,
      [&](const TokenizerSource& source) { return tokenize(flags, source); },
      [&](std::size_t done, std::size_t all) { bar.show(done, all); }
  );
  bar.clear();
  if (!report) return report_error(report.error());
  json ? print_json(*report) : print_table(*report);
  return 0;
}

}  // namespace afterglow
