// tested in src/verb/kinds_test.cc
#include <fmt/format.h>

#include "verb/catalogue.h"
#include "verb/kinds.h"

namespace penstock {
namespace {

class Prefetch final : public Hint {
 public:
  explicit Prefetch(const PrefetchOptions& options) : options_(options) {}
  [[nodiscard]] Words words() const override {
    return {"prefetch",
            fmt::format("prefetch(steps={}, bytes={})", options_.steps, options_.bytes)};
  }
  [[nodiscard]] Json arguments() const override {
    return {{"steps", options_.steps}, {"bytes", options_.bytes}};
  }
  void add_hints(Hints& hints) const override {
    if (options_.steps > 0) hints.prefetch_steps = options_.steps;
    if (options_.bytes > 0) hints.lookahead_bytes = options_.bytes;
  }

 private:
  const PrefetchOptions options_;
};

}  // namespace

Dataset Dataset::prefetch(const PrefetchOptions& options) const {
  return add_verb<Prefetch>(*this, options);
}

Dataset parse_prefetch(const Parsed& parsed) {
  return parsed.input().prefetch({parsed.count("steps"), parsed.count("bytes")});
}

}  // namespace penstock
