#include <fmt/format.h>

#include "base/json.h"
#include "penstock/error.h"
#include "source/source.h"

namespace penstock {
namespace {

class RangeSource final : public Source {
 public:
  RangeSource(std::int64_t start, std::int64_t stop, std::int64_t step)
      : start_(start), stop_(stop), step_(step), spec_(ElementSpec::single(Dtype::i64)) {}

  [[nodiscard]] std::string word() const override { return "range"; }
  [[nodiscard]] std::uint64_t size() const override {
    if (step_ > 0 ? start_ >= stop_ : start_ <= stop_) return 0;
    // Unsigned, so that the whole of i64 is a valid range.
    const auto low = static_cast<std::uint64_t>(step_ > 0 ? start_ : stop_);
    const auto high = static_cast<std::uint64_t>(step_ > 0 ? stop_ : start_);
    const auto stride =
        step_ > 0 ? static_cast<std::uint64_t>(step_) : ~static_cast<std::uint64_t>(step_) + 1;
    return (high - low - 1) / stride + 1;
  }
  [[nodiscard]] const ElementSpec& spec() const override { return spec_; }
  [[nodiscard]] std::string describe() const override {
    return fmt::format("range({}, {}, {})", start_, stop_, step_);
  }
  void identify(Digest& digest) const override { digest.add(describe()); }
  [[nodiscard]] Json arguments() const override {
    return {{"start", start_}, {"stop", stop_}, {"step", step_}};
  }

  Result<void> decode(std::span<const std::uint64_t> numbers, std::span<Bytes>,
                      const BlockView& out, const Context&) const override {
    auto* const values = reinterpret_cast<std::uint64_t*>(out.columns[0].data);
    const auto start = static_cast<std::uint64_t>(start_);
    const auto step = static_cast<std::uint64_t>(step_);
    for (std::size_t i = 0; i < numbers.size(); ++i) values[i] = start + numbers[i] * step;
    return {};
  }

 private:
  std::int64_t start_;
  std::int64_t stop_;
  std::int64_t step_;
  ElementSpec spec_;
};

}  // namespace

std::shared_ptr<const Source> make_range(std::int64_t start, std::int64_t stop, std::int64_t step) {
  if (step == 0) throw ConfigError("range: step must not be 0");
  return std::make_shared<RangeSource>(start, stop, step);
}

}  // namespace penstock
