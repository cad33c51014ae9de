#include "record/tfrecord.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/crc32c.h"

namespace penstock {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kChecksumBytes = 4;

std::uint32_t masked(std::uint32_t checksum) {
  return ((checksum >> 15) | (checksum << 17)) + 0xa282ead8U;
}

template <typename T>
T little(std::string_view bytes, std::size_t at) {
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

template <typename T>
void append_little(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// The checksum of these bytes is what follows them.
bool checksum_fits(std::string_view bytes, std::string_view stored) {
  return masked(crc32c(bytes)) == little<std::uint32_t>(stored, 0);
}

constexpr const char* kWrongLength =
    "the checksum of its length is wrong: this is no TFRecord file, or it is damaged";
constexpr const char* kWrongLengthRemedy =
    "fetch the file again, or skip errors; what follows in this file cannot be found";

std::string truncated_text(std::uint64_t there, std::uint64_t payload) {
  return fmt::format("the file ends after {} bytes of a record whose payload has {} bytes", there,
                     payload);
}

class TfrecordScanner final : public RecordScanner {
 public:
  std::uint64_t scan(std::uint64_t offset, std::string_view piece,
                     std::vector<std::uint64_t>& starts) override {
    if (damaged_) return kRest;
    const std::uint64_t end = offset + piece.size();
    while (next_ < end) {
      PENSTOCK_CHECK_LE(offset, next_ + header_.size());
      const std::uint64_t at = next_ + header_.size() - offset;
      if (header_.empty()) starts.push_back(next_);
      const std::size_t missing = kTfrecordHeaderBytes - header_.size();
      const std::string_view part = piece.substr(at, missing);
      // A header that is whole in this piece is not copied.
      std::string_view header = part;
      if (part.size() < kTfrecordHeaderBytes) {
        header = header_.append(part);
        if (header.size() < kTfrecordHeaderBytes) return 0;
      }
      if (!follow(header)) return kRest;
      header_.clear();
    }
    return next_ - end;
  }

  ScanEnd finish(std::uint64_t file_bytes, std::vector<std::uint64_t>&) override {
    if (damaged_) return {file_bytes, kWrongLength};
    if (!header_.empty())
      return {file_bytes, fmt::format("the file ends after {} bytes of a record, within its length",
                                      header_.size())};
    if (next_ > file_bytes) return {file_bytes, truncated_text(file_bytes - last_, payload_)};
    return {next_};
  }

 private:
  /// False if the next record cannot be found.
  bool follow(std::string_view header) {
    last_ = next_;
    payload_ = little<std::uint64_t>(header, 0);
    damaged_ = !checksum_fits(header.substr(0, kLengthBytes), header.substr(kLengthBytes));
    if (__builtin_add_overflow(next_ + kTfrecordBytes, payload_, &next_)) next_ = UINT64_MAX;
    return !damaged_;
  }

  std::uint64_t next_ = 0;     // where the next record begins
  std::uint64_t last_ = 0;     // where the one before it begins
  std::uint64_t payload_ = 0;  // how many bytes that one claims
  std::string header_;         // the part of the next record's header in pieces before
  bool damaged_ = false;
};

}  // namespace

std::unique_ptr<RecordScanner> make_tfrecord_scanner() {
  return std::make_unique<TfrecordScanner>();
}

Result<std::string_view> tfrecord_payload(std::string_view record) {
  if (record.size() < kTfrecordHeaderBytes)
    return Failure{
        fmt::format("the file ends after {} bytes of a record, within its length", record.size()),
        {},
        "fetch the file again: it is truncated"};
  if (!checksum_fits(record.substr(0, kLengthBytes), record.substr(kLengthBytes)))
    return Failure{kWrongLength, {}, kWrongLengthRemedy};
  const auto length = little<std::uint64_t>(record, 0);
  const std::uint64_t room = record.size() - kTfrecordHeaderBytes;
  if (length > room || room - length < kChecksumBytes)
    return Failure{
        truncated_text(record.size(), length), {}, "fetch the file again: it is truncated"};
  if (room - length > kChecksumBytes)
    return Failure{fmt::format("{} bytes follow the record", room - length - kChecksumBytes)};
  const std::string_view payload = record.substr(kTfrecordHeaderBytes, length);
  if (!checksum_fits(payload, record.substr(kTfrecordHeaderBytes + length)))
    return Failure{
        fmt::format("the checksum of its {} bytes is wrong: the record is damaged", payload.size()),
        {},
        "fetch the file again, or skip errors"};
  return payload;
}

void append_tfrecord(std::string& out, std::string_view payload) {
  const std::size_t at = out.size();
  append_little(out, std::uint64_t{payload.size()});
  append_little(out, masked(crc32c(std::string_view(out).substr(at))));
  out += payload;
  append_little(out, masked(crc32c(payload)));
}

}  // namespace penstock
