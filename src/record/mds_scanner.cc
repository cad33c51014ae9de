// tested in src/record/mds_test.cc
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "record/mds.h"

namespace penstock {
namespace {

class MdsScanner final : public RecordScanner {
 public:
  std::uint64_t scan(std::uint64_t, std::string_view piece, std::vector<std::uint64_t>&) override {
    constexpr std::uint64_t kNumber = sizeof(std::uint32_t);
    while (true) {
      const std::uint64_t wanted = header_.size() < kNumber ? kNumber : kNumber * (samples() + 2);
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
    if (damage.empty()) return {file_bytes, {}};
    starts.resize(before);
    if (file_bytes > 0) starts.push_back(0);
    return {file_bytes, std::move(damage)};
  }

 private:
  [[nodiscard]] std::uint64_t samples() const { return number(0); }
  /// Of the numbers of the header.
  [[nodiscard]] std::uint64_t number(std::uint64_t index) const {
    std::uint32_t value = 0;
    std::memcpy(&value, header_.data() + index * sizeof value, sizeof value);
    return value;
  }

  [[nodiscard]] std::string add_starts(std::uint64_t file_bytes,
                                       std::vector<std::uint64_t>& starts) const {
    constexpr std::size_t kNumber = sizeof(std::uint32_t);
    if (header_.size() < kNumber || header_.size() < kNumber * (samples() + 2))
      return "the shard ends within its offsets";
    std::uint64_t last = header_.size();
    for (std::uint64_t i = 0; i <= samples(); ++i) {
      const std::uint64_t offset = number(1 + i);
      if (offset < last || offset > file_bytes || (i > 0 && offset == last))
        return fmt::format("the offset of sample {} is wrong: {}, after {}, in {} bytes", i, offset,
                           last, file_bytes);
      if (i < samples()) starts.push_back(offset);
      last = offset;
    }
    if (last != file_bytes)
      return fmt::format("its samples end at byte {}, and it has {} bytes", last, file_bytes);
    return {};
  }

  std::string header_;
};

}  // namespace

std::unique_ptr<RecordScanner> make_mds_scanner() {
  return std::make_unique<MdsScanner>();
}

}  // namespace penstock
