#include "engine/kv_history.h"

#include <algorithm>
#include <string>
#include <utility>

#include "store/kv_conversion.h"

namespace afterglow {
namespace {

Error refused(const std::string& why) {
  return {Code::kInvalidArgument, "[engine.history] " + why};
}

Status check_origin(const KvOrigin& given, const KvOrigin& model) {
  if (given.fingerprint == Sha256Digest{}) {
    return {};
  }
  if (given.fingerprint != model.fingerprint) {
    return refused(
        "the cache history is another model's; continue it with the model "
        "that made it, or leave it out"
    );
  }
  if (given.spec != model.spec && given.spec != foreign_spec(model.spec)) {
    return refused(
        "the cache history was computed with other activations or on another "
        "backend; load the model as it was then, or leave it out"
    );
  }
  return {};
}

}  // namespace

Sha256Digest foreign_spec(const Sha256Digest& spec) {
  return Sha256().text("afterglow-foreign").digest(spec).finish();
}

std::size_t unknown_tokens(std::span<const Token> tokens) {
  auto known = std::find_if(tokens.begin(), tokens.end(), [](Token token) {
    return token != kUnknownToken;
  });
  return static_cast<std::size_t>(known - tokens.begin());
}

Result<KvHistoryPtr> adopt_history(
    const KvHistoryPtr& history,
    const KvOrigin& model,
    const KvLayout& layout,
    PagePool& pool
) {
  if (Status fits = check_origin(history->origin, model); !fits.ok()) {
    return fits.error();
  }
  if (Status fits = check_same_shapes(history->layout, layout); !fits.ok()) {
    return refused("the cache history has " + fits.error().message);
  }
  KvOrigin origin{model.fingerprint, history->origin.spec};
  if (history->origin.fingerprint == Sha256Digest{}) {
    origin.spec = foreign_spec(model.spec);
  }
  if (have_same_types(history->layout, layout)) {
    if (history->origin.fingerprint == model.fingerprint) {
      return history;
    }
    return std::make_shared<const KvHistory>(KvHistory{
        origin, layout, history->tokens, history->pages});
  }
  KvHistory converted{origin, layout, history->tokens, {}};
  for (std::size_t i = 0; i < history->pages.size(); ++i) {
    std::size_t used =
        std::min(kPageTokens, history->tokens.size() - i * kPageTokens);
    std::shared_ptr<Page> page = pool.make();
    Status done =
        convert_page(*history->pages[i], history->layout, layout, used, *page);
    if (!done.ok()) {
      return Error{
          done.error().code, "[engine.history] " + done.error().message};
    }
    converted.pages.push_back(std::move(page));
  }
  return std::make_shared<const KvHistory>(std::move(converted));
}

}  // namespace afterglow
