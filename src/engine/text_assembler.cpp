#include "engine/text_assembler.h"

#include <utility>

namespace afterglow {

TextAssembler::TextAssembler(
    const Tokenizer& tokenizer,
    std::vector<std::string> stops,
    bool skip_special
)
    : detokenizer_(tokenizer, skip_special), matcher_(std::move(stops)) {}

std::string TextAssembler::push(Token token) {
  std::string text = matcher_.push(detokenizer_.push(token));
  stopped_ = matcher_.stopped();
  return text;
}

std::string TextAssembler::finish() {
  std::string text;
  if (!stopped_) {
    text = matcher_.push(detokenizer_.flush());
    stopped_ = matcher_.stopped();
  }
  return text + matcher_.flush();
}

}  // namespace afterglow
