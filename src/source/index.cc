#include <fmt/format.h>

#include <utility>

#include "base/cancelled.h"
#include "base/guarded.h"
#include "penstock/error.h"
#include "sample/rows.h"
#include "source/source.h"
#include "trace/activity.h"

namespace penstock {
namespace {

class Index final : public Source {
 public:
  Index(std::uint64_t size, IndexFn fn, std::string name)
      : size_(size), fn_(std::move(fn)), name_(std::move(name)) {}

  [[nodiscard]] std::string word() const override { return "from_index"; }
  [[nodiscard]] std::uint64_t size() const override { return size_; }
  [[nodiscard]] const ElementSpec& spec() const override { return fn_.spec; }
  [[nodiscard]] std::string describe() const override {
    return fmt::format("from_index({}{}{})", size_, name_.empty() ? "" : ", ", name_);
  }
  [[nodiscard]] std::string name() const override { return name_; }
  void identify(Digest& digest) const override {
    digest.add(size_);
    digest.add(name_);
  }

  Result<void> decode(std::span<const std::uint64_t> numbers, std::span<Bytes>,
                      const BlockView& out, const Context& context) const override {
    for (std::size_t row = 0; row < numbers.size(); ++row) {
      if (!context.at_sample(out.identity.sample_id[row])) return cancelled(row);
      Sample made;
      auto done = guarded([&] { made = fn_.run(numbers[row]); }, [&] { return row; });
      if (!done) return done;
      if (const auto wrong = write_row(out, row, made))
        return Failure{*wrong,
                       {},
                       "from_index must return the same structure, dtypes and numbers of "
                       "dimensions for every index, and the sizes that .spec declares",
                       nullptr,
                       row};
    }
    return {};
  }

 private:
  std::uint64_t size_;
  IndexFn fn_;
  std::string name_;
};

}  // namespace

std::shared_ptr<const Source> make_index(std::uint64_t size, IndexFn fn, std::string name) {
  constexpr std::uint64_t kSizeMax = 1ULL << 62;
  if (size > kSizeMax)
    throw ConfigError(fmt::format("from_index: size {} is above 2^62", size), {},
                      "a negative number turns into such a size");
  return std::make_shared<Index>(size, std::move(fn), std::move(name));
}

}  // namespace penstock
