#include "model/divergence.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/check.h"
#include "base/page.h"
#include "base/thread_pool.h"
#include "model/model.h"
#include "ops/cpu/cpu_ops.h"

namespace afterglow {
namespace {

// Tokens of a step: their logits are kept for all modes at once.
constexpr std::size_t kStep = 64;

/// A model in one mode, with one sequence.
class Reader {
 public:
  static Result<std::unique_ptr<Reader>> load(
      const std::string& path, Activations mode, ThreadPool& pool
  ) {
    auto ops = make_cpu_ops(pool, mode);
    if (!ops) return ops.error();
    auto model = load_model(path, **ops);
    if (!model) return model.error();
    return std::unique_ptr<Reader>(
        new Reader(std::move(*ops), std::move(*model))
    );
  }

  const LoadedModel& model() const { return model_; }
  /// Of the last step. Shape: [tokens, vocab].
  const float* logits(std::size_t token) const {
    return logits_.data() + token * model_.vocab_size;
  }

  void start() { kv_ = ops_->new_kv(model_.layout, pages_); }

  Status read(std::span<const Token> tokens) {
    const Span span{0, tokens.size(), kv_.get()};
    const Batch batch{.tokens = tokens, .spans = {&span, 1}};
    std::vector<std::size_t> rows(tokens.size());
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = i;
    logits_.resize(rows.size() * model_.vocab_size);
    ops_->begin(batch);
    {
      const Architecture& architecture = *model_.architecture;
      const Value hidden = architecture.forward(*ops_, batch);
      ops_->logits(
          hidden,
          architecture.head(),
          rows,
          architecture.logit_softcap(),
          logits_
      );
    }
    return ops_->end(true);
  }

 private:
  Reader(std::unique_ptr<Ops> ops, LoadedModel model)
      : ops_(std::move(ops)),
        model_(std::move(model)),
        pages_(model_.layout.page_bytes()) {}

  std::unique_ptr<Ops> ops_;
  LoadedModel model_;
  PagePool pages_;
  std::unique_ptr<KvState> kv_;
  std::vector<float> logits_;
};

struct Distribution {
  const float* logits;
  std::size_t size;
  std::size_t first = 0;  // the most likely token
  double log_sum = 0;     // of all e^logit

  Distribution(const float* row, std::size_t count) : logits(row), size(count) {
    first = std::max_element(row, row + count) - row;
    const double largest = row[first];
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += std::exp(row[i] - largest);
    log_sum = largest + std::log(sum);
  }
  double log_probability(std::size_t i) const { return logits[i] - log_sum; }
};

double divergence(const Distribution& p, const Distribution& q) {
  double sum = 0;
  for (std::size_t i = 0; i < p.size; ++i) {
    const double log_p = p.log_probability(i);
    sum += std::exp(log_p) * (log_p - q.log_probability(i));
  }
  return sum;
}

/// What one position says of one mode.
struct Sample {
  double log_probability = 0;  // of the token that comes next
  double divergence = 0;
  bool same_first = false;
};

/// Adds samples up in their order.
struct Sums {
  double log_probability = 0;
  double divergence = 0;
  double largest = 0;
  std::size_t same_first = 0;

  void add(const Sample& sample) {
    log_probability += sample.log_probability;
    divergence += sample.divergence;
    largest = std::max(largest, sample.divergence);
    same_first += sample.same_first ? 1 : 0;
  }

  ModeQuality quality(Activations mode, std::size_t positions) const {
    const auto count = static_cast<double>(positions);
    return {
        .mode = mode,
        .perplexity = std::exp(-log_probability / count),
        .mean_divergence = divergence / count,
        .largest_divergence = largest,
        .same_first = static_cast<double>(same_first) / count};
  }
};

class Comparison {
 public:
  Comparison(const DivergenceOptions& options)
      : options_(options), pool_(options.threads) {}

  Status load(const TextToTokens& text) {
    // The exact one leads.
    std::vector<Activations> modes{Activations::kF32};
    modes.insert(modes.end(), options_.modes.begin(), options_.modes.end());
    for (const Activations mode : modes) {
      auto reader = Reader::load(options_.model, mode, pool_);
      if (!reader) return reader.error();
      readers_.push_back(std::move(*reader));
    }
    sums_.resize(readers_.size());
    auto tokens = text(model().tokenizer);
    if (!tokens) return tokens.error();
    tokens_ = std::move(*tokens);
    return check();
  }

  Result<DivergenceReport> run(const TextProgress& progress) {
    DivergenceReport report{.model_name = model().name};
    for (std::size_t at = 0; at + 1 < tokens_.size(); at += options_.window) {
      const auto window = std::span(tokens_).subspan(
          at, std::min(options_.window, tokens_.size() - at)
      );
      for (const auto& reader : readers_) reader->start();
      for (std::size_t i = 0; i + 1 < window.size(); i += kStep) {
        const std::size_t count = std::min(kStep, window.size() - 1 - i);
        if (Status done = read(window.subspan(i, count + 1)); !done) {
          return done.error();
        }
        report.positions += count;
        progress(at + i + count, tokens_.size());
      }
      ++report.windows;
    }
    report.exact = sums_[0].quality(Activations::kF32, report.positions);
    for (std::size_t m = 1; m < readers_.size(); ++m) {
      report.modes.push_back(
          sums_[m].quality(options_.modes[m - 1], report.positions)
      );
    }
    return report;
  }

 private:
  const LoadedModel& model() const { return readers_.front()->model(); }

  Status check() const {
    const std::size_t context = model().context_length;
    if (options_.window < 2 || options_.window > context) {
      return Error{
          Code::kInvalidArgument,
          "[model.divergence] a window of " + std::to_string(options_.window) +
              " tokens: 2 to " + std::to_string(context) +
              " are possible with this model"};
    }
    if (tokens_.size() < 2) {
      return Error{
          Code::kInvalidArgument,
          "[model.divergence] the text has " + std::to_string(tokens_.size()) +
              " tokens; two are the least that say anything"};
    }
    return {};
  }

  /// Reads all but the last token, each of which is followed by another.
  Status read(std::span<const Token> tokens) {
    const std::size_t count = tokens.size() - 1;
    for (const auto& reader : readers_) {
      if (Status done = reader->read(tokens.first(count)); !done) return done;
    }
    const std::size_t modes = readers_.size();
    std::vector<Sample> samples(count * modes);
    pool_.run(count, [&](std::size_t i, int) {
      sample(i, static_cast<std::size_t>(tokens[i + 1]), &samples[i * modes]);
    });
    for (std::size_t i = 0; i < samples.size(); ++i) {
      sums_[i % modes].add(samples[i]);
    }
    return {};
  }

  void sample(std::size_t position, std::size_t next, Sample* out) const {
    const std::size_t vocab = model().vocab_size;
    const Distribution exact(readers_[0]->logits(position), vocab);
    out[0] = {exact.log_probability(next), 0, true};
    for (std::size_t m = 1; m < readers_.size(); ++m) {
      const Distribution other(readers_[m]->logits(position), vocab);
      out[m] = {
          other.log_probability(next),
          divergence(exact, other),
          exact.first == other.first};
    }
  }

  const DivergenceOptions options_;
  ThreadPool pool_;
  std::vector<std::unique_ptr<Reader>> readers_;
  std::vector<Token> tokens_;
  std::vector<Sums> sums_;
};

}  // namespace

Result<DivergenceReport> measure_divergence(
    const DivergenceOptions& options,
    const TextToTokens& tokens,
    const TextProgress& progress
) {
  Comparison comparison(options);
  if (Status loaded = comparison.load(tokens); !loaded) return loaded.error();
  return comparison.run(progress);
}

}  // namespace afterglow
