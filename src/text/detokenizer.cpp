#include "text/detokenizer.h"

#include "text/textkit_util.h"

namespace afterglow {

void Detokenizer::Free::operator()(tk_stream* stream) const {
  tk_stream_free(stream);
}

Detokenizer::Detokenizer(const Tokenizer& tokenizer, bool skip_special)
    : stream_(tk_stream_new(tokenizer.handle_.get(), skip_special)) {}

std::string Detokenizer::push(Token token) {
  return std::string(textkit::view(tk_stream_push(stream_.get(), token)));
}

std::string Detokenizer::flush() {
  return std::string(textkit::view(tk_stream_flush(stream_.get())));
}

}  // namespace afterglow
