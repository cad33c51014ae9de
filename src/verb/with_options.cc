// tested in src/verb/kinds_test.cc
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "verb/catalogue.h"
#include "verb/kinds.h"

namespace penstock {
namespace {

class WithOptions final : public Hint {
 public:
  explicit WithOptions(const Options& options) : options_(options) {}
  [[nodiscard]] Words words() const override {
    std::vector<std::string> given;
    if (!options_.name.empty()) given.push_back(fmt::format("name=\"{}\"", options_.name));
    if (options_.threads) given.push_back(fmt::format("threads={}", *options_.threads));
    if (options_.lookahead_bytes)
      given.push_back(fmt::format("lookahead_bytes={}", *options_.lookahead_bytes));
    return {"with_options", fmt::format("with_options({})", fmt::join(given, ", "))};
  }
  /// Threads and bytes are limits of this machine and are not serialized.
  [[nodiscard]] Json arguments() const override { return {{"name", options_.name}}; }
  void add_hints(Hints& hints) const override {
    if (!options_.name.empty()) hints.name = options_.name;
    if (options_.threads) hints.threads = options_.threads;
    if (options_.lookahead_bytes) hints.lookahead_bytes = options_.lookahead_bytes;
  }

 private:
  const Options options_;
};

}  // namespace

Dataset Dataset::with_options(const Options& options) const {
  return add_verb<WithOptions>(*this, options);
}

Dataset parse_with_options(const Parsed& parsed) {
  Options options;
  options.name = parsed.text("name");
  return parsed.input().with_options(options);
}

}  // namespace penstock
