#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "afterglow/generate.h"
#include "arrays.h"
#include "bindings.h"
#include "prompt.h"

namespace nb = nanobind;

namespace afterglow::python {
namespace {

/// The logits that each token was chosen by, in the order of the tokens.
using Seen = std::deque<Floats>;

struct TextStreamHandle {
  TextStreamHandle(
      TextStream one, Callables called, std::shared_ptr<Seen> logits
  )
      : stream(std::move(one)),
        callables(std::move(called)),
        seen(std::move(logits)) {}

  /// Ends it. Callables go first: the stream drops them without the GIL.
  void reset() {
    callables.clear();
    stream.reset();
  }

  Owned<TextStream> stream;
  Callables callables;         // the stream's
  std::shared_ptr<Seen> seen;  // null: not asked for
  std::atomic_flag busy = ATOMIC_FLAG_INIT;
};

struct Output {
  StepOutput step;
  Floats logits;
};

Floats copy(std::span<const float> values) {
  return std::make_shared<std::vector<float>>(values.begin(), values.end());
}

/// Python may keep what it gets, so it gets copies.
LogitsProcessor to_processor(nb::object function, Callables& callables) {
  return [call = keep(callables, std::move(function))](
             std::span<const Token> tokens, std::span<float> logits
         ) {
    Floats values = copy(logits);
    auto so_far =
        std::make_shared<std::vector<Token>>(tokens.begin(), tokens.end());
    {
      const GilHeld held;
      call(share<TokenArray>(so_far), share<FloatArray>(values));
    }
    std::ranges::copy(*values, logits.begin());
  };
}

TokenSampler to_sampler(nb::object function, Callables& callables) {
  return [call = keep(callables, std::move(function))](
             std::span<const float> logprobs
         ) {
    Floats values = copy(logprobs);
    const GilHeld held;
    return nb::cast<Token>(call(share<FloatArray>(values)));
  };
}

LogitsProcessor remember(std::shared_ptr<Seen> seen) {
  return [seen = std::move(seen)](
             std::span<const Token>, std::span<float> logits
         ) { seen->push_back(copy(logits)); };
}

std::unique_ptr<TextStreamHandle> open(
    const ModelHandle& model,
    const TextOrTokens& text_or_tokens,
    std::size_t system_tokens,
    std::optional<std::size_t> max_tokens,
    const SamplingParams& sampling,
    nb::object sampler,
    nb::object processor,
    std::vector<std::string> stop,
    std::vector<Token> stop_tokens,
    const HistoryHandle* history,
    bool return_cache,
    bool logits,
    std::size_t top_logprobs,
    bool verbose,
    nb::object progress
) {
  Callables callables;
  GenerateOptions options;
  options.max_tokens =
      max_tokens.value_or(std::numeric_limits<std::size_t>::max());
  options.sampling = sampling;
  if (!sampler.is_none())
    options.sampler = to_sampler(std::move(sampler), callables);
  if (!processor.is_none()) {
    options.logits_processors.push_back(
        to_processor(std::move(processor), callables)
    );
  }
  std::shared_ptr<Seen> seen;
  if (logits) {
    seen = std::make_shared<Seen>();
    options.logits_processors.push_back(remember(seen));
  }
  options.stop = std::move(stop);
  options.stop_tokens = std::move(stop_tokens);
  if (history != nullptr) options.cache_history = *history->history;
  options.return_cache = return_cache;
  options.logprobs = logits || top_logprobs > 0;
  options.top_logprobs = top_logprobs;
  options.verbose = verbose;
  options.prompt_progress_callback =
      to_progress(std::move(progress), callables);
  const Model& one = *model.model;
  const Prompt prompt = to_prompt(text_or_tokens, system_tokens);
  TextStream stream =
      without_gil([&] { return stream_generate(one, prompt, options); });
  return std::make_unique<TextStreamHandle>(
      std::move(stream), std::move(callables), std::move(seen)
  );
}

std::optional<Output> next(TextStreamHandle& self) {
  const OneThread alone(self.busy);
  TextStream& stream = *self.stream;
  wait_with_signals([&](std::chrono::milliseconds at_most) {
    return stream.wait_for(at_most);
  });
  std::optional<StepOutput> step = without_gil([&] { return stream.next(); });
  if (!step) return std::nullopt;
  Output output{*std::move(step), nullptr};
  if (self.seen && output.step.token != kUnknownToken) {
    output.logits = std::move(self.seen->front());
    self.seen->pop_front();
  }
  return output;
}

void close(TextStreamHandle& self) {
  const OneThread alone(self.busy);
  self.reset();
}

template <class T>
auto field(T StepOutput::*member) {
  return [member](const Output& self) -> T { return self.step.*member; };
}

std::vector<std::pair<Token, float>> top(const Output& self) {
  std::vector<std::pair<Token, float>> all;
  for (const TokenLogprob& one : self.step.top_logprobs) {
    all.emplace_back(one.token, one.logprob);
  }
  return all;
}

std::optional<std::string> finish_reason(const Output& self) {
  if (!self.step.finish_reason) return std::nullopt;
  return to_string(*self.step.finish_reason);
}

std::optional<HistoryHandle> history(const Output& self) {
  if (!self.step.cache_history) return std::nullopt;
  return HistoryHandle{Owned<CacheHistory>(*self.step.cache_history)};
}

std::optional<FloatArray> logits(const Output& self) {
  if (!self.logits) return std::nullopt;
  return share<FloatArray>(self.logits);
}

void bind_output(nb::module_& module) {
  nb::class_<Output>(module, "Output")
      .def_prop_ro("text", field(&StepOutput::text))
      .def_prop_ro("token", field(&StepOutput::token))
      .def_prop_ro("logprob", field(&StepOutput::logprob))
      .def_prop_ro("top_logprobs", &top)
      .def_prop_ro("prompt_tokens", field(&StepOutput::prompt_tokens))
      .def_prop_ro("cached_tokens", field(&StepOutput::cached_tokens))
      .def_prop_ro("prompt_tps", field(&StepOutput::prompt_tps))
      .def_prop_ro("generation_tokens", field(&StepOutput::generation_tokens))
      .def_prop_ro("generation_tps", field(&StepOutput::generation_tps))
      .def_prop_ro("peak_memory", field(&StepOutput::peak_memory))
      .def_prop_ro("finish_reason", &finish_reason)
      .def_prop_ro("cache_history", &history)
      .def("logits", &logits);
}

}  // namespace

void bind_text_stream(nb::module_& module) {
  bind_output(module);
  const auto slots = collected<TextStreamHandle>();
  nb::class_<TextStreamHandle>(
      module, "TextStream", nb::is_final(), nb::type_slots(slots.data())
  )
      .def("next", &next, "Waits for the next output; None after the last.")
      .def("close", &close, "Ends it; the second time nothing.");
  module.def(
      "stream_generate",
      &open,
      nb::arg("model"),
      nb::arg("prompt"),
      nb::kw_only(),
      nb::arg("system_tokens"),
      nb::arg("max_tokens").none(),
      nb::arg("sampling"),
      nb::arg("sampler").none(),
      nb::arg("processor").none(),
      nb::arg("stop"),
      nb::arg("stop_tokens"),
      nb::arg("cache_history").none(),
      nb::arg("return_cache"),
      nb::arg("logits"),
      nb::arg("top_logprobs"),
      nb::arg("verbose"),
      nb::arg("progress").none()
  );
}

}  // namespace afterglow::python
