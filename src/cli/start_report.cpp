#include "cli/start_report.h"

#include <spdlog/spdlog.h>

#include <cstdint>
#include <string_view>

#include "base/memory_size.h"
#include "cli/human.h"
#include "engine/memory_limit.h"
#include "server/log_value.h"

namespace afterglow {
namespace {

std::string value_or_none(std::string_view text) {
  return text.empty() ? "none" : log_value(text);
}

}  // namespace

void log_ready(
    const Engine& engine, const LoadOptions& options, const std::string& url
) {
  const ModelInfo& model = engine.info();
  const EngineReport report = engine.report();
  const AnswerFormat& format = engine.answer_format();
  spdlog::info(
      "ready version={} model={} architecture={} quantization={} backend={} "
      "context={} address={} memory_limit={} ram_budget={} disk_budget={} "
      "tool_format={} reasoning_format={} load_ms={:.0f}",
      AFTERGLOW_VERSION,
      log_value(model.name),
      log_value(model.architecture),
      log_value(model.quantization),
      log_value(model.backend),
      model.context_length,
      url,
      memory_limit_of(options),
      report.cache.limits.ram_bytes,
      report.store ? report.store->disk_limit_bytes : 0,
      format.tool_calls == nullptr ? "none" : format.tool_calls->name,
      value_or_none(format.reasoning_mark()),
      model.load_seconds * 1000
  );
}

void warn_of_memory_limit(const LoadOptions& options) {
  const std::uint64_t usable = usable_memory();
  if (options.memory_limit.value_or(0) <= usable) return;
  const bool grouped = usable < physical_memory();
  spdlog::warn(
      "--memory-limit, {}, is more than the {} of memory that {}: the system "
      "may kill a server that takes more",
      human_bytes(*options.memory_limit),
      human_bytes(usable),
      grouped ? "the control group of the server may take" : "this machine has"
  );
}

void warn_of_template(const Engine& engine, const RequestDefaults& defaults) {
  if (!engine.info().has_chat_template) return;
  ChatInput chat;
  chat.messages = R"([{"role":"user","content":"hello"}])";
  chat.variables = defaults.chat_template_args;
  const auto rendered = engine.render_chat(chat);
  if (rendered.ok()) return;
  spdlog::warn(
      "the chat template refuses a plain message of a user: {}",
      rendered.error().message
  );
}

}  // namespace afterglow
