// tested in src/record/litdata_test.cc
#include <fmt/format.h>

#include <cstring>

#include "record/litdata.h"

namespace penstock {
namespace {

constexpr std::uint64_t kNumber = sizeof(std::uint32_t);

class LitDataScanner final : public RecordScanner {
 public:
  explicit LitDataScanner(std::uint64_t window_bytes) : window_bytes_(window_bytes) {}

  std::uint64_t scan(std::uint64_t, std::string_view piece, std::vector<std::uint64_t>&) override {
    while (true) {
      const std::uint64_t wanted = header_.size() < kNumber ? kNumber : header_bytes();
      if (header_.size() == wanted) return kRest;
      const auto missing = static_cast<std::size_t>(wanted - header_.size());
      header_.append(piece.substr(0, missing));
      if (piece.size() < missing) return 0;
      piece.remove_prefix(missing);
    }
  }

  /// The offsets count only if all of them agree with the size of the file.
  ScanEnd finish(std::uint64_t file_bytes, std::vector<std::uint64_t>& starts) override {
    const std::size_t before = starts.size();
    std::string damage = add_starts(file_bytes, starts);
    if (!damage.empty()) {
      starts.resize(before);
      if (file_bytes > 0) starts.push_back(0);
      return {file_bytes, std::move(damage)};
    }
    if (window_bytes_ == 0) return {file_bytes, {}};
    starts.resize(before);
    const std::uint64_t windows = (file_bytes - header_bytes()) / window_bytes_;
    for (std::uint64_t i = 0; i < windows; ++i)
      starts.push_back(header_bytes() + i * window_bytes_);
    return {header_bytes() + windows * window_bytes_, {}};
  }

 private:
  [[nodiscard]] std::uint64_t items() const { return number(0); }
  [[nodiscard]] std::uint64_t header_bytes() const { return kNumber * (items() + 2); }
  /// Of the numbers of the header.
  [[nodiscard]] std::uint64_t number(std::uint64_t index) const {
    std::uint32_t value = 0;
    std::memcpy(&value, header_.data() + index * sizeof value, sizeof value);
    return value;
  }

  [[nodiscard]] std::string add_starts(std::uint64_t file_bytes,
                                       std::vector<std::uint64_t>& starts) const {
    if (header_.size() < kNumber || header_.size() < header_bytes())
      return "the chunk ends within its offsets";
    if (number(1) != header_bytes())
      return fmt::format("its items begin at byte {}, and its offsets end at {}", number(1),
                         header_bytes());
    std::uint64_t last = number(1);
    for (std::uint64_t i = 0; i < items(); ++i) {
      const std::uint64_t end = number(2 + i);
      // Windows need no items: one without tokens makes no difference.
      if (end < last || end > file_bytes || (window_bytes_ == 0 && end == last))
        return fmt::format("item {}, at byte {}, has a wrong end: {}, in a file of {} bytes", i,
                           last, end, file_bytes);
      starts.push_back(last);
      last = end;
    }
    if (last != file_bytes)
      return fmt::format("its items end at byte {}, and it has {} bytes", last, file_bytes);
    return {};
  }

  const std::uint64_t window_bytes_;
  std::string header_;
};

}  // namespace

std::unique_ptr<RecordScanner> make_litdata_scanner(std::uint64_t window_bytes) {
  return std::make_unique<LitDataScanner>(window_bytes);
}

}  // namespace penstock
