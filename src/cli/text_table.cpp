#include "cli/text_table.h"

#include <algorithm>

namespace afterglow {

std::string TextTable::format(const std::string& indent) const {
  std::vector<std::size_t> widths(columns_.size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::vector<std::string> titles;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    titles.push_back(columns_[i].title);
    if (widths[i] > 0) widths[i] = std::max(widths[i], titles[i].size());
  }
  std::string out;
  auto add_line = [&](const std::vector<std::string>& cells) {
    std::string line = indent;
    bool first = true;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (widths[i] == 0) continue;
      line += first ? "" : "  ";
      first = false;
      const std::string space(widths[i] - cells[i].size(), ' ');
      line += columns_[i].right ? space + cells[i] : cells[i] + space;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  };
  add_line(titles);
  for (const auto& row : rows_) add_line(row);
  return out;
}

}  // namespace afterglow
