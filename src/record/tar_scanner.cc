// tested in src/record/tar_test.cc
#include <fmt/format.h>

#include <algorithm>

#include "base/printable.h"
#include "record/tar.h"
#include "record/tar_header.h"

namespace penstock {
namespace {

class TarScanner final : public RecordScanner {
 public:
  std::uint64_t scan(std::uint64_t offset, std::string_view piece,
                     std::vector<std::uint64_t>& starts) override {
    const std::uint64_t end = offset + piece.size();
    while (damage_.empty()) {
      if (next_ >= end) return next_ - end;
      const std::string_view left = piece.substr(next_ + part_.size() - offset);
      const std::size_t missing = wanted() - part_.size();
      if (part_.empty() && left.size() >= missing) {
        take(left.substr(0, missing), starts);
        continue;
      }
      part_.append(left.substr(0, missing));
      if (left.size() < missing) return 0;
      // A copy: what is taken may be a name, and the next part must find this one empty.
      taken_.swap(part_);
      part_.clear();
      take(taken_, starts);
    }
    return kRest;
  }

  [[nodiscard]] std::uint64_t undecided_from() const override {
    if (headers_.within() || extension_) return first_header_;
    return part_.empty() ? UINT64_MAX : next_;
  }

  ScanEnd finish(std::uint64_t file_bytes, std::vector<std::uint64_t>& starts) override {
    if (damage_.empty()) check_end(file_bytes, starts);
    if (!damage_.empty()) return {file_bytes, std::move(damage_)};
    return {std::min(end_, file_bytes), {}};
  }

 private:
  [[nodiscard]] std::size_t wanted() const {
    return extension_ ? static_cast<std::size_t>(tar_padded(headers_.extension_bytes()))
                      : kTarBlock;
  }

  /// `bytes` are what was wanted, at `next_`.
  void take(std::string_view bytes, std::vector<std::uint64_t>& starts) {
    const std::uint64_t at = next_;
    if (!extension_ && !headers_.within()) first_header_ = at;
    next_ += bytes.size();
    if (extension_) {
      extension_ = false;
      const std::size_t content = static_cast<std::size_t>(headers_.extension_bytes());
      if (Result<void> extended = headers_.extend(bytes.substr(0, content)); !extended.ok())
        set_damage(std::move(extended.failure().message), starts);
      return;
    }
    Result<TarHeaders::Next> read = headers_.read(bytes);
    if (!read.ok()) {
      std::string& reason = read.failure().message;
      set_damage(at == 0 ? "this is no tar: " + reason : std::move(reason), starts);
      return;
    }
    archive_ended_ = archive_ended_ || headers_.zeros();
    // An extension without content has nothing to wait for.
    extension_ = *read == TarHeaders::Next::extension;
    if (extension_ && wanted() == 0) take({}, starts);
    if (*read == TarHeaders::Next::member) take_member(starts);
  }

  void take_member(std::vector<std::uint64_t>& starts) {
    const TarMember& member = headers_.member();
    content_end_ = next_ + member.content_bytes;
    next_ += tar_padded(member.content_bytes);
    end_ = next_;
    name_ = member.name;
    const std::optional<TarName> name = tar_name_of(member);
    within_record_ = name.has_value();
    if (!name || (!starts_none_ && !archive_ended_ && name->key == key_)) return;
    key_ = name->key;
    starts_none_ = archive_ended_ = false;
    starts.push_back(first_header_);
  }

  void check_end(std::uint64_t file_bytes, std::vector<std::uint64_t>& starts) {
    if (content_end_ > file_bytes) {
      // A member that belongs to no sample does not spoil the one before it.
      damage_ = fmt::format("member \"{}\" should end at byte {}, and the file has {}",
                            printable(name_), content_end_, file_bytes);
      if (!within_record_) starts.push_back(first_header_);
      return;
    }
    const bool zeros = std::ranges::all_of(part_, [](char byte) { return byte == '\0'; });
    if (zeros && !headers_.within() && !extension_) return;
    if (!headers_.within() && !extension_) first_header_ = next_;
    set_damage(
        fmt::format("the file ends in the middle of a header, which begins at byte {}", next_),
        starts);
  }

  void set_damage(std::string reason, std::vector<std::uint64_t>& starts) {
    damage_ = std::move(reason);
    starts.push_back(first_header_);
  }

  TarHeaders headers_;
  std::uint64_t next_ = 0;          // byte to look at
  std::uint64_t first_header_ = 0;  // of the member whose headers are read
  std::uint64_t content_end_ = 0;   // of the last member, without padding
  std::uint64_t end_ = 0;           // of the last member
  std::string name_;                // of the last member
  std::string key_;                 // of the last record
  std::string part_;                // of what is wanted: as much as there was in the pieces
  std::string taken_;
  std::string damage_;
  bool extension_ = false;  // its content is wanted
  bool within_record_ = false;
  bool archive_ended_ = false;  // since the last record began
  bool starts_none_ = true;
};

}  // namespace

std::unique_ptr<RecordScanner> make_tar_scanner() {
  return std::make_unique<TarScanner>();
}

}  // namespace penstock
