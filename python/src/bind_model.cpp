#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <cmath>
#include <exception>
#include <future>
#include <stop_token>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "api/model_state.h"
#include "bindings.h"
#include "callable.h"
#include "text/detokenizer.h"

namespace nb = nanobind;

namespace afterglow::python {
namespace {

/// The loaded models, for the interpreter's end. Thread: the GIL.
std::vector<std::weak_ptr<ModelState>>& loaded_models() {
  static auto* all = new std::vector<std::weak_ptr<ModelState>>;
  return *all;
}

std::chrono::nanoseconds nanoseconds(double seconds, const char* name) {
  constexpr double kMost = 9e9;  // what 64 bits of nanoseconds hold
  if (!(seconds >= 0 && seconds <= kMost)) {
    throw Exception(
        Code::kInvalidArgument,
        "[load] " + std::string(name) + " must be a number of seconds, 0 or " +
            "more"
    );
  }
  return std::chrono::nanoseconds(
      static_cast<std::int64_t>(std::llround(seconds * 1e9))
  );
}

template <class Value>
Value one_of(
    const std::string& name,
    const char* option,
    std::initializer_list<std::pair<const char*, Value>> values
) {
  std::string known;
  for (const auto& [word, value] : values) {
    if (name == word) return value;
    known += known.empty() ? word : std::string(", ") + word;
  }
  throw Exception(
      Code::kInvalidArgument,
      "[load] " + std::string(option) + " is '" + name + "', not one of " +
          known
  );
}

/// Loads on a thread of its own, so that this one can be interrupted.
Model load_interruptibly(
    const std::string& path, const LoadOptions& options, nb::object progress
) {
  std::stop_source stop;
  std::exception_ptr thrown;  // by the callback
  std::function<void(const DownloadProgress&)> report;
  if (!progress.is_none()) {
    report =
        [&, call = Callable(std::move(progress))](const DownloadProgress& now) {
          const GilHeld held;
          if (thrown) return;
          try {
            call(std::string(now.file), now.done, now.total);
          } catch (...) {
            thrown = std::current_exception();
            stop.request_stop();
          }
        };
  }
  std::packaged_task<Model()> task([&] {
    return load(path, options, report, stop.get_token());
  });
  auto loaded = task.get_future();
  std::jthread thread(std::move(task));
  try {
    wait_with_signals([&](std::chrono::milliseconds at_most) {
      return loaded.wait_for(at_most) == std::future_status::ready;
    });
  } catch (...) {
    const GilReleased released;
    stop.request_stop();
    thread.join();
    throw;
  }
  without_gil([&] { thread.join(); });
  if (thrown) {
    without_gil([&] { loaded = {}; });
    std::rethrow_exception(std::exchange(thrown, nullptr));
  }
  return loaded.get();
}

ModelHandle load_model(
    const std::string& path,
    const std::string& backend,
    const std::optional<std::string>& activations,
    int threads,
    const std::string& chat_template,
    const std::string& prompt_cache_dir,
    std::optional<std::uint64_t> prompt_cache_bytes,
    std::optional<std::uint64_t> prompt_cache_size,
    std::optional<std::uint64_t> prompt_cache_disk_bytes,
    double prompt_cache_ttl,
    std::optional<std::uint64_t> memory_limit,
    nb::object progress
) {
  LoadOptions options;
  options.backend = one_of<Backend>(
      backend, "backend", {{"cpu", Backend::kCpu}, {"mlx", Backend::kMlx}}
  );
  if (activations) {
    options.activations = one_of<Activations>(
        *activations,
        "activations",
        {{"int16", Activations::kInt16},
         {"int8", Activations::kInt8},
         {"f32", Activations::kF32}}
    );
  }
  options.threads = threads;
  options.chat_template = chat_template;
  options.prompt_cache_dir = prompt_cache_dir;
  options.prompt_cache_bytes = prompt_cache_bytes;
  options.prompt_cache_size = prompt_cache_size;
  options.prompt_cache_disk_bytes = prompt_cache_disk_bytes;
  options.prompt_cache_ttl = nanoseconds(prompt_cache_ttl, "prompt_cache_ttl");
  options.memory_limit = memory_limit;
  Model model = load_interruptibly(path, options, std::move(progress));
  std::erase_if(loaded_models(), [](const auto& one) { return one.expired(); });
  loaded_models().push_back(model.state());
  return {Owned<Model>(std::move(model))};
}

std::tuple<std::vector<Token>, std::size_t> apply_chat_template(
    const ModelHandle& self,
    const std::string& messages,
    const std::string& tools,
    const std::string& variables
) {
  const Model& model = *self.model;
  const Prompt prompt = without_gil([&] {
    return model.apply_chat_template(messages, tools, variables);
  });
  return {prompt.tokens().value(), prompt.system_tokens()};
}

const Tokenizer& tokenizer(const ModelHandle& self) {
  return self.model->state()->engine().tokenizer();
}

nb::bytes piece(const ModelHandle& self, Token token) {
  const Tokenizer& all = tokenizer(self);
  if (token < 0 || static_cast<std::size_t>(token) >= all.vocab_size()) {
    throw Exception(
        Code::kInvalidArgument,
        "[tokenizer] token " + std::to_string(token) +
            " is not in the vocabulary of " + std::to_string(all.vocab_size())
    );
  }
  const std::string_view bytes = all.piece(token);
  return nb::bytes(bytes.data(), bytes.size());
}

void bind_info(nb::module_& module) {
  nb::class_<ModelInfo>(module, "ModelInfo", "What a model is.")
      .def_ro("name", &ModelInfo::name)
      .def_ro("path", &ModelInfo::path)
      .def_ro("architecture", &ModelInfo::architecture)
      .def_ro("quantization", &ModelInfo::quantization)
      .def_ro("backend", &ModelInfo::backend)
      .def_ro("vocab_size", &ModelInfo::vocab_size)
      .def_ro("context_length", &ModelInfo::context_length, "In tokens.")
      .def_ro("parameters", &ModelInfo::parameters)
      .def_ro("weight_bytes", &ModelInfo::weight_bytes)
      .def_ro("load_seconds", &ModelInfo::load_seconds)
      .def_ro("stop_tokens", &ModelInfo::stop_tokens)
      .def("__repr__", [](const ModelInfo& self) {
        return "ModelInfo(" + self.name + ", " + self.architecture + ", " +
               self.quantization + ", " + self.backend + ")";
      });
}

void bind_text(nb::class_<ModelHandle>& model) {
  model
      .def(
          "encode",
          [](const ModelHandle& self,
             std::string_view text,
             bool add_special_tokens) {
            const Model& one = *self.model;
            return without_gil([&] {
              return one.encode(text, add_special_tokens);
            });
          },
          nb::arg("text"),
          nb::arg("add_special_tokens")
      )
      .def(
          "decode",
          [](const ModelHandle& self,
             const std::vector<Token>& tokens,
             bool skip_special_tokens) {
            const Model& one = *self.model;
            return without_gil([&] {
              return one.decode(tokens, skip_special_tokens);
            });
          },
          nb::arg("tokens"),
          nb::arg("skip_special_tokens")
      )
      .def(
          "apply_chat_template",
          &apply_chat_template,
          nb::arg("messages_json"),
          nb::arg("tools_json"),
          nb::arg("variables_json"),
          "The prompt's tokens and how many of them are a system prompt."
      )
      .def(
          "token_to_id",
          [](const ModelHandle& self, std::string_view token) {
            return tokenizer(self).token_to_id(token);
          },
          nb::arg("token")
      )
      .def("piece", &piece, nb::arg("token"), "The bytes it adds to a text.")
      .def(
          "special_tokens",
          [](const ModelHandle& self) {
            const Tokenizer& all = tokenizer(self);
            return std::tuple(all.bos(), all.eos(), all.pad(), all.unk());
          },
          "bos, eos, pad, unk."
      );
}

struct DetokenizerHandle {
  Detokenizer detokenizer;
};

void bind_detokenizer(nb::module_& module) {
  nb::class_<DetokenizerHandle>(module, "Detokenizer")
      .def(
          "__init__",
          [](DetokenizerHandle* self, const ModelHandle& model) {
            new (self) DetokenizerHandle{Detokenizer(tokenizer(model))};
          },
          nb::arg("model")
      )
      .def(
          "push",
          [](DetokenizerHandle& self, Token token) {
            return self.detokenizer.push(token);
          },
          nb::arg("token"),
          "The characters that this token completes."
      )
      .def(
          "flush",
          [](DetokenizerHandle& self) { return self.detokenizer.flush(); },
          "What an unfinished character left."
      );
}

}  // namespace

void close_models() {
  for (const auto& one : loaded_models()) {
    std::shared_ptr<ModelState> state = one.lock();
    if (!state) continue;
    without_gil([&] {
      Model(state).close();
      state.reset();
    });
  }
}

void forget_models() {
  loaded_models().clear();
}

void bind_model(nb::module_& module) {
  bind_info(module);
  nb::class_<ModelHandle> model(
      module,
      "Model",
      nb::is_final(),
      nb::is_weak_referenceable(),
      "A loaded model with its prompt cache and generation thread. Safe to "
      "use from many threads\nat once. Of the process that loaded it."
  );
  model
      .def_prop_ro(
          "info",
          [](const ModelHandle& self) { return ModelInfo(self.model->info()); },
          "What was loaded."
      )
      .def(
          "close",
          [](const ModelHandle& self, double write_time) {
            Model one = *self.model;
            const auto most = nanoseconds(write_time, "write_time");
            return without_gil([&] { return one.close(most); });
          },
          nb::arg("write_time") = 30.0,
          "Ends what still runs and writes the prompt cache to its directory "
          "for at most that many\nseconds. False: some of it did not reach "
          "the disk. Generating then raises Error."
      )
      .def("__repr__", [](const ModelHandle& self) {
        return "Model(" + self.model->info().name + ")";
      });
  bind_text(model);
  bind_detokenizer(module);
  module.def(
      "load",
      &load_model,
      nb::arg("path_or_hf_repo"),
      nb::kw_only(),
      nb::arg("backend"),
      nb::arg("activations").none(),
      nb::arg("threads"),
      nb::arg("chat_template"),
      nb::arg("prompt_cache_dir"),
      nb::arg("prompt_cache_bytes").none(),
      nb::arg("prompt_cache_size").none(),
      nb::arg("prompt_cache_disk_bytes").none(),
      nb::arg("prompt_cache_ttl"),
      nb::arg("memory_limit").none(),
      nb::arg("progress").none()
  );
}

}  // namespace afterglow::python
