#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <variant>

#include "afterglow/generate.h"
#include "arrays.h"
#include "bindings.h"
#include "prompt.h"

namespace nb = nanobind;

namespace afterglow::python {
namespace {

struct LogitsStreamHandle {
  LogitsStreamHandle(LogitsStream one, Callables called)
      : stream(std::move(one)), callables(std::move(called)) {}

  /// Ends it. Callables go first: the stream drops them without the GIL.
  void reset() {
    callables.clear();
    stream.reset();
  }

  Owned<LogitsStream> stream;
  Callables callables;  // the stream's
  std::atomic_flag busy = ATOMIC_FLAG_INIT;
};

std::unique_ptr<LogitsStreamHandle> open(
    const ModelHandle& model,
    const TextOrTokens& text_or_tokens,
    const HistoryHandle* history,
    std::optional<std::size_t> max_tokens,
    nb::object progress
) {
  Callables callables;
  StepOptions options;
  options.max_tokens = max_tokens.value_or(model.model->info().context_length);
  if (history != nullptr) options.cache_history = *history->history;
  options.prompt_progress_callback =
      to_progress(std::move(progress), callables);
  const Model& one = *model.model;
  const Prompt prompt = to_prompt(text_or_tokens, 0);
  LogitsStream stream =
      without_gil([&] { return generate_step(one, prompt, options); });
  return std::make_unique<LogitsStreamHandle>(
      std::move(stream), std::move(callables)
  );
}

FloatArray logits(LogitsStreamHandle& self) {
  const OneThread alone(self.busy);
  LogitsStream& stream = *self.stream;
  wait_with_signals([&](std::chrono::milliseconds at_most) {
    return stream.wait_for(at_most);
  });
  return share<FloatArray>(without_gil([&] { return stream.logits(); }));
}

void accept(LogitsStreamHandle& self, Token token) {
  const OneThread alone(self.busy);
  LogitsStream& stream = *self.stream;
  without_gil([&] { stream.accept(token); });
}

HistoryHandle history(LogitsStreamHandle& self) {
  const OneThread alone(self.busy);
  return {Owned<CacheHistory>(self.stream->cache_history())};
}

std::vector<Token> tokens(LogitsStreamHandle& self) {
  const OneThread alone(self.busy);
  return self.stream->tokens();
}

std::size_t cached_tokens(LogitsStreamHandle& self) {
  const OneThread alone(self.busy);
  return self.stream->cached_tokens();
}

void close(LogitsStreamHandle& self) {
  const OneThread alone(self.busy);
  self.reset();
}

}  // namespace

void bind_logits_stream(nb::module_& module) {
  const auto slots = collected<LogitsStreamHandle>();
  nb::class_<LogitsStreamHandle>(
      module,
      "LogitsStream",
      nb::is_final(),
      nb::type_slots(slots.data()),
      "Logits for those who choose tokens themselves. For one thread at a time."
  )
      .def(
          "logits",
          &logits,
          "The logits behind all tokens so far, [vocab_size]: the memory that "
          "they were computed into,\nwhich may be changed and kept. The same "
          "memory until the next accept()."
      )
      .def(
          "accept",
          &accept,
          nb::arg("token"),
          "Continues with that token. logits() comes before it."
      )
      .def_prop_ro("tokens", &tokens, "Prompt and accepted tokens.")
      .def_prop_ro(
          "cached_tokens",
          &cached_tokens,
          "Tokens of the prompt that were not computed; 0 before logits()."
      )
      .def(
          "cache_history",
          &history,
          "All tokens whose logits were there, with their KV. Raises: "
          "ValueError before the first logits()."
      )
      .def("close", &close, "Ends it; the second time nothing.")
      .def("__enter__", [](nb::object self) { return self; })
      .def(
          "__exit__",
          [](LogitsStreamHandle& self, nb::object, nb::object, nb::object) {
            close(self);
          },
          nb::arg().none(),
          nb::arg().none(),
          nb::arg().none()
      );
  module.def(
      "logits_stream",
      &open,
      nb::arg("model"),
      nb::arg("prompt"),
      nb::arg("cache_history").none(),
      nb::arg("max_tokens").none(),
      nb::arg("progress").none()
  );
}

}  // namespace afterglow::python
