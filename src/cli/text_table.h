#pragma once

#include <string>
#include <vector>

namespace afterglow {

/// Rows of text in columns, as wide as they need to be.
class TextTable {
 public:
  struct Column {
    std::string title;
    bool right = false;  // numbers
  };

  explicit TextTable(std::vector<Column> columns)
      : columns_(std::move(columns)) {}

  /// Requires: a cell for each column.
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

  /// The table with its titles; each line begins with `indent` and ends
  /// without trailing spaces. Columns in which no row has text are left out.
  std::string format(const std::string& indent = "") const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace afterglow
