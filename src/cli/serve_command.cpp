#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "cli/commands.h"
#include "cli/descriptor_limit.h"
#include "cli/engine_flags.h"
#include "cli/flag_sources.h"
#include "cli/report_error.h"
#include "cli/serve_flags.h"
#include "cli/set_up_log.h"
#include "cli/signals.h"
#include "cli/start_report.h"
#include "server/api.h"
#include "server/api_error.h"
#include "server/http_server.h"

namespace afterglow {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr auto kCutTime = 2s;
constexpr auto kFlushTime = 30s;
constexpr auto kTick = 50ms;

ApiOptions api_options(const ServeFlags& flags, bool keys_are_checked) {
  ApiOptions options;
  options.responses = flags.http.responses;
  options.clients_by_key = keys_are_checked || flags.engine.cache_namespaces;
  options.defaults = flags.requests;
  options.defaults.temperature = flags.sampling.temperature;
  options.defaults.top_p = flags.sampling.top_p;
  options.defaults.top_k = flags.sampling.top_k;
  options.defaults.min_p = flags.sampling.min_p;
  return options;
}

void print_ready(
    const ModelInfo& info, const std::string& url, bool needs_key
) {
  std::printf(
      "Ready: %s (%s, %s, %s), loaded in %.2f s. Try:\n\n"
      "  curl -s %s/v1/chat/completions \\\n"
      "    -H 'Content-Type: application/json' \\\n%s"
      "    -d '{\"messages\": [{\"role\": \"user\", \"content\": "
      "\"What is a prompt cache?\"}]}'\n\n",
      info.name.c_str(),
      info.architecture.c_str(),
      info.quantization.c_str(),
      info.backend.c_str(),
      info.load_seconds,
      url.c_str(),
      needs_key ? "    -H 'Authorization: Bearer KEY' \\\n" : ""
  );
  std::fflush(stdout);
}

/// A default that the model cannot do would fail every request.
Result<std::unique_ptr<Engine>> load_to_serve(const ServeFlags& flags) {
  auto engine = load_engine(flags.engine);
  if (!engine.ok()) return engine;
  const Status good = check_sampling(flags.sampling, (*engine)->info());
  if (!good.ok()) return good.error();
  return engine;
}

/// Loads in the background, so that the server can say that it does.
class Loader {
 public:
  /// Both must outlive it.
  Loader(const ServeFlags& flags, EngineSlot& slot)
      : thread_([this, &flags, &slot] {
          auto loaded = load_to_serve(flags);
          if (loaded.ok()) {
            engine_ = *std::move(loaded);
            slot.set_ready(*engine_);
          } else {
            error_ = loaded.error();
            slot.set_failed(loaded.error());
          }
          finished_ = true;
        }) {}
  ~Loader() { thread_.join(); }

  bool finished() const { return finished_; }
  // Once finished.
  Engine* engine() { return engine_.get(); }
  const Error& error() const { return error_; }

 private:
  std::unique_ptr<Engine> engine_;
  Error error_{Code::kInternal, {}};
  std::atomic<bool> finished_{false};
  std::thread thread_;
};

/// SIGHUP asks for new files, unless it says that the terminal is gone.
bool is_for_the_end(int number, const Signals& signals) {
  return number != 0 && (number != SIGHUP || signals.lost_terminal());
}

bool wait_for_the_end(Signals& signals) {
  return is_for_the_end(signals.take(kTick), signals);
}

/// Lets answers end; a second signal or the deadline cuts them.
void stop_serving(
    HttpServer& server, Signals& signals, std::chrono::seconds drain_time
) {
  spdlog::info(
      "stopping state=draining drain_s={} connections={}",
      drain_time.count(),
      server.connections()
  );
  server.drain();
  const auto deadline = steady_clock::now() + drain_time;
  bool hurry = false;
  while (!server.wait_drained(steady_clock::now()) && !hurry &&
         steady_clock::now() < deadline) {
    hurry = wait_for_the_end(signals);
  }
  if (server.wait_drained(steady_clock::now())) return;
  spdlog::warn("stopping state=cutting connections={}", server.connections());
  server.cut(stopping_error());
  server.wait_drained(steady_clock::now() + kCutTime);
}

/// A further signal gives up on the flush; what is on disk stays whole.
void flush_engine(Engine& engine, Signals& signals) {
  const auto now = steady_clock::now();
  auto flushed = std::async(std::launch::async, [&engine, now] {
    return engine.shutdown(now, now + kFlushTime);
  });
  while (flushed.wait_for(0s) != std::future_status::ready) {
    if (wait_for_the_end(signals)) {
      spdlog::warn("stopping state=flush_given_up");
      std::_Exit(0);
    }
  }
  if (!flushed.get()) {
    spdlog::warn("stopping state=flush_incomplete");
  }
}

int serve(const ServeFlags& flags) {
  Signals signals;
  signals.also({SIGHUP});
  set_up_log(flags.log_level);
  for (const std::string& text : flags.unknown_variables)
    spdlog::warn("{}", text);
  warn_of_memory_limit(flags.engine);
  make_room_for_connections(flags.http.limits.connections);
  const auto rules = access_rules(flags.access, flags.http.host);
  if (!rules.ok()) return report_error(rules.error());
  ReplaceableGate gate(*rules);
  EngineSlot slot;
  auto api =
      std::make_unique<Api>(slot, api_options(flags, !rules->keys.empty()));
  auto started = HttpServer::start(
      flags.http,
      [&api](HttpRequest request) { return api->handle(std::move(request)); },
      [&gate](const HttpRequest& request) { return gate.admit(request); }
  );
  if (!started.ok()) {
    return report_error(started.error());
  }
  std::unique_ptr<HttpServer> server = *std::move(started);
  const std::string url = server->url();
  std::printf("Listening on %s\n", url.c_str());
  std::fflush(stdout);
  warn_of_open_doors(
      flags.access, flags.http, flags.file_with_keys, *rules, *server
  );

  Loader loader(flags, slot);
  const auto told_to_stop = [&](std::chrono::milliseconds at_most) {
    const int number = signals.take(at_most);
    if (is_for_the_end(number, signals)) return true;
    if (number == SIGHUP) {
      renew_secrets(flags.access, flags.http, gate, *server);
    }
    return false;
  };
  bool stop = false;
  while (!loader.finished()) {
    stop = told_to_stop(kTick) || stop;
    if (!stop || slot.view().state != EngineSlot::State::kLoading) continue;
    // Loading cannot be cut short, and there is nothing to save yet.
    spdlog::info("stopping state=loading");
    server.reset();
    spdlog::info("stopped");
    std::_Exit(0);
  }
  if (loader.engine() == nullptr) {
    return report_error(loader.error());
  }
  log_ready(*loader.engine(), flags.engine, url);
  warn_of_template(*loader.engine(), flags.requests);
  print_ready(loader.engine()->info(), url, !rules->keys.empty());

  while (!stop) stop = told_to_stop(1h);
  slot.set_stopping();
  stop_serving(*server, signals, std::chrono::seconds(flags.drain_seconds));
  server.reset();
  api.reset();  // its workers use the engine
  flush_engine(*loader.engine(), signals);
  spdlog::info("stopped");
  return 0;
}

}  // namespace

void add_serve_command(CLI::App& app, Action& action) {
  auto flags = std::make_shared<ServeFlags>();
  auto sources = std::make_shared<FlagSources>();
  auto print_config = std::make_shared<bool>(false);
  CLI::App* command =
      app.add_subcommand("serve", "Serve a model over HTTP (OpenAI's API)");
  sources->add_flags(*command);
  command
      ->add_flag(
          "--print-config",
          *print_config,
          "Print all flags as a file for --config, and end"
      )
      ->configurable(false);
  add_serve_flags(*command, *flags);
  command->callback([=, &action] {
    sources->apply(*command);
    flags->file_with_keys = sources->file_with_keys();
    flags->unknown_variables = FlagSources::unknown_variables(*command);
    if (*print_config) {
      action = [text = sources->print(*command)] {
        std::fputs(text.c_str(), stdout);
        return 0;
      };
    } else {
      check_together(flags->engine);
      check_together(flags->http);
      action = [flags] { return serve(*flags); };
    }
  });
}

}  // namespace afterglow
