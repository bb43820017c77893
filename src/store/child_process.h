#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <set>
#include <sstream>
#include <string>
#include <vector>

extern char** environ;

namespace afterglow::testing {

/// A store_crash_child under way and what it said so far.
class ChildProcess {
 public:
  explicit ChildProcess(std::vector<std::string> arguments) {
    int pipe[2];
    EXPECT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, pipe[1], STDOUT_FILENO);
    arguments.insert(arguments.begin(), AFTERGLOW_STORE_CRASH_CHILD);
    std::vector<char*> argv;
    for (std::string& argument : arguments) {
      argv.push_back(argument.data());
    }
    argv.push_back(nullptr);
    pid_t pid = 0;
    int error =
        ::posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ);
    EXPECT_EQ(error, 0) << argv[0] << ": " << std::strerror(error);
    pid_ = error == 0 ? pid : 0;
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(pipe[1]);
    output_ = pipe[0];
  }
  ~ChildProcess() {
    if (!has_ended_) {
      kill();
      wait();
    }
    ::close(output_);
  }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  void kill() {
    // Of a child that never started there is nothing to kill; kill(-1, ...)
    // would mean every process there is.
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
    }
  }

  /// Reads on until it says `line`, ends, or the time is over; true when it
  /// said so.
  bool wait_for(const std::string& line, std::chrono::milliseconds patience) {
    auto end = std::chrono::steady_clock::now() + patience;
    while (said_.count(line) == 0) {
      auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          end - std::chrono::steady_clock::now()
      );
      if (left.count() <= 0 || !read_some(static_cast<int>(left.count()))) {
        return false;
      }
    }
    return true;
  }

  /// Reads what is there. A child whose pipe is full stops, perhaps with the
  /// directory's lock in its hands.
  void drain() {
    while (read_some(0)) {
    }
  }

  /// It ended, or closed its output.
  bool is_closed() const { return closed_; }

  /// Reads to the end; the exit status, or minus the signal.
  int wait() {
    while (read_some(-1)) {
    }
    int status = 0;
    has_ended_ = true;
    if (pid_ == 0) {
      return 127;
    }
    EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  }

  /// Whole lines in their order.
  const std::vector<std::string>& lines() const { return lines_; }

  /// Blocks that it announced and did not set out to remove afterwards.
  std::set<std::string> announced() const {
    std::set<std::string> ids;
    for (const std::string& line : lines_) {
      std::istringstream words(line);
      std::string word;
      words >> word;
      bool is_announced = word == "announced";
      bool is_going = word == "going";
      while ((is_announced || is_going) && words >> word) {
        is_announced ? (void)ids.insert(word) : (void)ids.erase(word);
      }
    }
    return ids;
  }

  /// The first line that begins so, without that; else empty.
  std::string said(const std::string& word) const {
    for (const std::string& line : lines_) {
      if (line.rfind(word + " ", 0) == 0) {
        return line.substr(word.size() + 1);
      }
    }
    return "";
  }

 private:
  /// False at the end, or when nothing came in time.
  bool read_some(int patience_ms) {
    pollfd poller{output_, POLLIN, 0};
    if (::poll(&poller, 1, patience_ms) <= 0) {
      return false;
    }
    char bytes[4096];
    ssize_t count = ::read(output_, bytes, sizeof bytes);
    if (count <= 0) {
      closed_ = true;
      return false;
    }
    partial_.append(bytes, static_cast<std::size_t>(count));
    for (std::size_t end; (end = partial_.find('\n')) != std::string::npos;) {
      lines_.push_back(partial_.substr(0, end));
      said_.insert(lines_.back());
      partial_.erase(0, end + 1);
    }
    return true;
  }

  pid_t pid_ = 0;  // 0: it never started
  int output_ = -1;
  bool closed_ = false;  // it will say no more
  bool has_ended_ = false;
  std::string partial_;
  std::vector<std::string> lines_;
  std::set<std::string> said_;
};

}  // namespace afterglow::testing
