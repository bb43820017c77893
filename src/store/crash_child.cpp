// A process on a cache directory for the tests of crashes and of sharing. It
// tells on standard output, a line at a time, what it did, so that its parent
// knows what must be there after a kill:
//   op OPERATION KIND     every operation, with trace=1
//   ready                 the store is open, indexed and tidy
//   announced ID...       these blocks are durable
//   going ID              this block's file is about to be unlinked
//   wrong WHAT            an answer or an invariant is wrong
//   reused TOKENS, done   the end
//
//   store_crash_child DIRECTORY script|load [KEY=VALUE...]
//   kill=MOMENT,OPERATION,KIND,N   dies around the N-th such operation (from 0)
//   limit=BLOCKS  seed=N  rounds=N  clear=1  trace=1

#include <csignal>
#include <iostream>
#include <map>
#include <sstream>

#include "base/faulty_file_system.h"
#include "store/testing.h"

namespace afterglow {
namespace {

using namespace testing;

void say(const std::string& line) {
  std::string text = line + "\n";
  // In one call, so that lines of several threads stay whole.
  if (::write(STDOUT_FILENO, text.data(), text.size()) < 0) {
    std::_Exit(4);
  }
}

/// What a name stands for, without its digits.
std::string kind_of(std::string_view name) {
  std::string_view base = name.substr(name.rfind('/') + 1);
  if (name.starts_with("v1/tmp/")) {
    return "temporary";
  }
  if (base.ends_with(".safetensors")) {
    return "block";
  }
  return base.empty() ? "root" : base.size() > 64 ? "model" : std::string(base);
}

struct Settings {
  std::string directory;
  bool is_load = false;
  std::map<std::string, std::string> values;

  std::uint64_t number(const std::string& key, std::uint64_t otherwise) const {
    auto found = values.find(key);
    return found == values.end() ? otherwise : std::stoull(found->second);
  }
};

Settings parse(int argc, char** argv) {
  Settings settings{argv[1], std::string_view(argv[2]) == "load"};
  for (int i = 3; i < argc; ++i) {
    std::string text = argv[i];
    std::size_t at = text.find('=');
    settings.values[text.substr(0, at)] = text.substr(at + 1);
  }
  return settings;
}

/// Kills this process where it was told to.
class KillPoint {
 public:
  explicit KillPoint(const std::string& text) {
    std::istringstream in(text);
    std::string n;
    std::getline(in, moment_, ',');
    std::getline(in, operation_, ',');
    std::getline(in, kind_, ',');
    std::getline(in, n, ',');
    left_ = n.empty() ? -1 : std::stol(n);
  }

  /// True in the middle: the operation is to be done by half.
  bool before(std::string_view operation, const std::string& kind) {
    if (operation != operation_ || kind != kind_ || left_-- != 0) {
      return false;
    }
    armed_ = true;
    if (moment_ == "before") {
      ::raise(SIGKILL);
    }
    return moment_ == "middle";
  }
  void after() {
    if (armed_) {
      ::raise(SIGKILL);
    }
  }

 private:
  std::string moment_;
  std::string operation_;
  std::string kind_;
  std::atomic<long> left_{-1};
  static thread_local bool armed_;
};

thread_local bool KillPoint::armed_ = false;

class Child {
 public:
  explicit Child(Settings settings)
      : settings_(std::move(settings)),
        kill_(settings_.values["kill"]),
        plain_(open()),
        limit_(settings_.number("limit", 12) * full_block()) {
    process_ = std::make_unique<Process>(
        make_faulty_file_system(
            open(),
            [this](auto operation, auto name) {
              return before(operation, name);
            },
            [this](auto operation, auto name) { after(operation, name); }
        ),
        limit_
    );
    if (!process_->is_open()) {
      wrong("not open: " + process_->error());
    }
  }

  int run() {
    process_->wait_for_index();
    expect(process_->flush().complete, "first flush");
    say("ready");
    settings_.is_load ? load() : script();
    expect(process_->flush().complete, "last flush");
    announce();
    StoreStats stats = process_->store().stats();
    expect(stats.corrupt_blocks == 0, "corrupt blocks");
    process_.reset();
    say("reused " + std::to_string(reused_));
    say("done");
    return 0;
  }

 private:
  std::unique_ptr<FileSystem> open() const {
    auto files = open_posix_file_system(settings_.directory);
    if (!files) {
      std::cerr << files.error().message << std::endl;
      std::_Exit(5);
    }
    return std::move(*files);
  }

  static std::uint64_t full_block() {
    ModelKey key = small_key();
    return block_file_bytes(
        key, *make_block(root_of(key), 0, make_tokens(kPageTokens, 1))
    );
  }

  [[noreturn]] static void wrong(const std::string& what) {
    say("wrong " + what);
    std::_Exit(3);
  }
  static void expect(bool holds, const char* what) {
    if (!holds || ::testing::Test::HasFailure()) {
      wrong(what);
    }
  }

  std::optional<Error> before(
      std::string_view operation, std::string_view name
  ) {
    std::string kind = kind_of(name);
    if (settings_.number("trace", 0) != 0) {
      say("op " + std::string(operation) + " " + kind);
    }
    if (operation == "remove" && kind == "block") {
      std::string_view base = name.substr(name.rfind('/') + 1);
      say("going " + std::string(base.substr(0, 64)));
    }
    return kill_.before(operation, kind)
               ? std::optional(Error{Code::kIo, "[test] half done"})
               : std::nullopt;
  }

  void after(std::string_view operation, std::string_view name) {
    kill_.after();
    // A batch was linked, and the lock is still ours.
    if (operation == "sync_directory" && kind_of(name) == "blocks") {
      std::uint64_t used = block_bytes(*plain_, std::string(name));
      if (used > limit_) {
        wrong("budget: " + std::to_string(used));
      }
    }
  }

  void announce() {
    std::string line = "announced";
    for (const BlockId& id : process_->cache().durable_blocks()) {
      line += " " + id.hex();
    }
    say(line);
  }

  void flush() {
    expect(process_->flush().complete, "flush");
    announce();
  }

  void serve(
      const std::vector<Token>& tokens,
      std::vector<Boundary> boundaries = {},
      const std::optional<BlockId>& root = {}
  ) {
    reused_ += process_->serve(tokens, std::move(boundaries), root);
    expect(true, "pages");
  }

  void clear(const std::optional<BlockId>& root) {
    auto cleared = process_->store().clear(root);
    if (!cleared) {
      wrong(cleared.error().message);
    }
  }

  /// Commits, tails that supersede, evictions, manifests, a clear.
  void script() {
    BlockId other =
        root_id(process_->key().fingerprint, process_->key().spec, "other");
    auto first = make_tokens(2 * kPageTokens + 30, 1);
    serve(first, {{EntryType::kSystem, kPageTokens}});
    flush();
    auto longer = join(first, make_tokens(40, 2));
    serve(longer);
    flush();
    serve(make_tokens(kPageTokens + 20, 3), {}, other);
    flush();
    for (std::uint64_t i = 4; i < 6; ++i) {
      serve(make_tokens(3 * kPageTokens, i));
      flush();
    }
    clear(other);
    serve(join(longer, make_tokens(kPageTokens, 6)));
    flush();
    clear({});
    serve(first);
    flush();
  }

  /// A request's life at random, with a part that all processes share.
  void load() {
    std::mt19937_64 random(settings_.number("seed", 1));
    auto shared = make_tokens(2 * kPageTokens, 1000);
    bool clears = settings_.number("clear", 0) != 0;
    std::uint64_t rounds = settings_.number("rounds", 1 << 30);
    for (std::uint64_t i = 0; i < rounds; ++i) {
      auto own = make_tokens(50 + random() % 500, random() % 16);
      serve(join(shared, own), {{EntryType::kSystem, shared.size()}});
      if (random() % 4 == 0) {
        process_->cache().shrink_ram(~std::uint64_t{0});
      }
      if (random() % 3 == 0) {
        flush();
      }
      if (clears && random() % 16 == 0) {
        clear({});
      }
    }
  }

  Settings settings_;
  KillPoint kill_;
  std::unique_ptr<FileSystem> plain_;
  std::uint64_t limit_;
  std::unique_ptr<Process> process_;
  std::uint64_t reused_ = 0;
};

}  // namespace
}  // namespace afterglow

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "see the top of crash_child.cpp" << std::endl;
    return 2;
  }
  spdlog::set_level(spdlog::level::off);
  return afterglow::Child(afterglow::parse(argc, argv)).run();
}
