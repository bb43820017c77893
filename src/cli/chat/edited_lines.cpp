#include <histedit.h>
#include <langinfo.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <cwchar>
#include <optional>
#include <string>
#include <string_view>

#include "base/check.h"
#include "cli/chat/line_history.h"
#include "cli/chat/line_source.h"

namespace afterglow {
namespace {

constexpr std::size_t kRemembered = 1000;
constexpr wchar_t kToTheEnd = 5;  // ^E
constexpr char kPasteBegins[] = "\033[?2004h";
constexpr char kPasteEnds[] = "\033[?2004l";

/// libedit reads characters by the locale. One of the user's that is not
/// UTF-8 would make it refuse what we send.
void use_utf8() {
  for (const char* name : {"", "C.UTF-8", "en_US.UTF-8"}) {
    if (std::setlocale(LC_CTYPE, name) != nullptr &&
        std::strcmp(::nl_langinfo(CODESET), "UTF-8") == 0) {
      return;
    }
  }
}

constexpr std::size_t kPromptWidth = 2;

/// A prompt that stands out; \1 brackets what takes no place.
char* prompt(EditLine*) {
  static char text[] = "\1\033[1;35m\1>\1\033[0m\1 ";
  return text;
}

class EditedLines : public LineSource {
 public:
  EditedLines(Signals& signals, const std::string& history_file)
      : signals_(signals), file_(history_file) {
    use_utf8();
    screen_ = ::isatty(STDOUT_FILENO) == 1 ? stdout : stderr;
    edit_ = ::el_init("afterglow", stdin, screen_, stderr);
    history_ = ::history_init();
    CHECK(edit_ != nullptr && history_ != nullptr, "libedit has no memory");
    HistEvent event;
    ::history(history_, &event, H_SETSIZE, static_cast<int>(kRemembered));
    ::history(history_, &event, H_SETUNIQUE, 1);
    for (const std::string& line : file_.read(kRemembered)) enter(line);
    set_up();
  }
  ~EditedLines() override {
    ::el_end(edit_);
    ::history_end(history_);
  }
  EditedLines(const EditedLines&) = delete;
  EditedLines& operator=(const EditedLines&) = delete;

  UserLine read() override {
    ended_by_.reset();
    show(kPasteBegins);
    int count = 0;
    const char* text = ::el_gets(edit_, &count);
    show(kPasteEnds);
    if (ended_by_ || text == nullptr || count <= 0) {
      show(ended_by_ == SIGINT ? "^C\n" : "\n");
      if (ended_by_ == SIGINT) return {UserLine::Kind::kInterrupt, {}};
      if (ended_by_) return {UserLine::Kind::kSignal, {}, *ended_by_};
      return {UserLine::Kind::kEnd, {}};
    }
    std::string line(text, static_cast<std::size_t>(count));
    if (line.ends_with('\n')) line.pop_back();
    return {UserLine::Kind::kLine, line};
  }

  void remember(const std::string& line) override {
    enter(line);
    file_.add(line);
  }

 private:
  static EditedLines& self(EditLine* edit) {
    void* data = nullptr;
    ::el_get(edit, EL_CLIENTDATA, &data);
    return *static_cast<EditedLines*>(data);
  }
  static int get(EditLine* edit, wchar_t* out) {
    return self(edit).get_character(out);
  }
  static unsigned char paste(EditLine* edit, wint_t) {
    return self(edit).take_paste();
  }
  static unsigned char new_line(EditLine* edit, wint_t) {
    return ::el_insertstr(edit, "\n") == 0 ? CC_REFRESH : CC_ERROR;
  }

  void bind(const char* key, const char* function) {
    ::el_set(edit_, EL_BIND, key, function, nullptr);
  }

  void set_up() {
    ::el_set(edit_, EL_CLIENTDATA, this);
    ::el_set(edit_, EL_PROMPT_ESC, prompt, '\1');
    ::el_set(edit_, EL_EDITOR, "emacs");
    ::el_set(edit_, EL_HIST, ::history, history_);
    ::el_set(edit_, EL_SIGNAL, 0);
    ::el_set(edit_, EL_GETCFN, get);
    ::el_set(edit_, EL_ADDFN, "chat-paste", "Insert a pasted text", paste);
    ::el_set(edit_, EL_ADDFN, "chat-new-line", "Begin a new line", new_line);
    bind("^R", "em-inc-search-prev");
    bind("^W", "ed-delete-prev-word");
    bind("\033[3~", "ed-delete-next-char");
    bind("\033[H", "ed-move-to-beg");
    bind("\033[F", "ed-move-to-end");
    bind("\033[1;5C", "em-next-word");
    bind("\033[1;5D", "ed-prev-word");
    ::el_source(edit_, nullptr);  // what the user wants otherwise
    bind("\033[200~", "chat-paste");
    bind("\033^M", "chat-new-line");
    bind("\033^J", "chat-new-line");
  }

  void enter(const std::string& line) {
    HistEvent event;
    ::history(history_, &event, H_ENTER, line.c_str());
  }

  void show(const char* text) {
    std::fputs(text, screen_);
    std::fflush(screen_);
  }

  /// 1 and a character; -1: what ended_by_ says, or the input's end.
  int get_character(wchar_t* out) {
    if (ended_by_) return -1;
    for (;;) {
      if (at_ < filled_) {
        if (decode(out)) return 1;
        continue;
      }
      if (!signals_.wait_with(STDIN_FILENO)) {
        on_signal(signals_.take(std::chrono::milliseconds(0)));
        if (!ended_by_) continue;
        // The cursor goes to the end of all lines first.
        *out = kToTheEnd;
        return 1;
      }
      const auto count = ::read(STDIN_FILENO, buffer_, sizeof buffer_);
      if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (count <= 0) return -1;
      at_ = 0;
      filled_ = static_cast<std::size_t>(count);
    }
  }

  /// The next character, if its bytes are complete. What is no UTF-8 is left
  /// out.
  bool decode(wchar_t* out) {
    const std::size_t used =
        std::mbrtowc(out, buffer_ + at_, filled_ - at_, &shift_);
    if (used == static_cast<std::size_t>(-2)) {
      at_ = filled_;
      return false;
    }
    if (used == static_cast<std::size_t>(-1)) {
      shift_ = {};
      ++at_;
      return false;
    }
    at_ += used == 0 ? 1 : used;
    return used != 0;
  }

  void on_signal(int number) {
    if (number == SIGWINCH) {
      resize();
    } else if (number == SIGTSTP) {
      ::el_set(edit_, EL_PREP_TERM, 0);
      show(kPasteEnds);
      show("\n");
      signals_.suspend();
      ::el_set(edit_, EL_PREP_TERM, 1);
      show(kPasteBegins);
      ::el_set(edit_, EL_REFRESH);
    } else if (number != 0) {
      ended_by_ = number;
    }
  }

  /// libedit forgets where the cursor was: it must draw from the first row,
  /// to which terminals have wrapped the text anew.
  void resize() {
    winsize size{};
    if (::ioctl(STDIN_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) {
      return;
    }
    const std::size_t up =
        std::min<std::size_t>(rows_above_cursor(size.ws_col), size.ws_row);
    if (up > 0) show(("\033[" + std::to_string(up) + "A").c_str());
    show("\r\033[J");
    ::el_resize(edit_);
    ::el_set(edit_, EL_REFRESH);
  }

  std::size_t rows_above_cursor(std::size_t columns) const {
    const LineInfoW* line = ::el_wline(edit_);
    std::size_t rows = 0;
    std::size_t column = kPromptWidth;
    for (const wchar_t* at = line->buffer; at < line->cursor; ++at) {
      const auto width = static_cast<std::size_t>(std::max(0, ::wcwidth(*at)));
      const bool wraps = column + width > columns;
      rows += *at == L'\n' || wraps ? 1 : 0;
      column = *at == L'\n' ? 0 : wraps ? width : column + width;
    }
    return rows;
  }

  unsigned char take_paste() {
    constexpr std::wstring_view kEnd = L"\033[201~";
    std::wstring text;
    while (!text.ends_with(kEnd)) {
      wchar_t next = 0;
      if (get_character(&next) != 1 || ended_by_) return CC_EOF;
      text += next;
    }
    text.resize(text.size() - kEnd.size());
    const std::wstring line = cleaned(text);
    if (line.empty()) return CC_NORM;
    return ::el_winsertstr(edit_, line.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
  }

  /// With line feeds alone, and no other control characters but tabs.
  static std::wstring cleaned(const std::wstring& text) {
    std::wstring result;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const wchar_t c = text[i];
      if (c == L'\r') {
        if (i + 1 == text.size() || text[i + 1] != L'\n') result += L'\n';
      } else if (c == L'\n' || c == L'\t' || (c >= L' ' && c != 127)) {
        result += c;
      }
    }
    return result;
  }

  Signals& signals_;
  LineHistory file_;
  std::FILE* screen_ = nullptr;
  EditLine* edit_ = nullptr;
  History* history_ = nullptr;
  std::optional<int> ended_by_;  // a signal
  char buffer_[4096];
  std::size_t at_ = 0;
  std::size_t filled_ = 0;
  std::mbstate_t shift_{};
};

}  // namespace

std::unique_ptr<LineSource> edited_lines(
    Signals& signals, const std::string& history_file
) {
  return std::make_unique<EditedLines>(signals, history_file);
}

}  // namespace afterglow
