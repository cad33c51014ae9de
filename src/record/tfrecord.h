#pragma once
// TFRecord files: each record is its length (8 bytes, little-endian), a checksum of the length,
// the payload and a checksum of the payload. The checksums are masked CRC-32Cs.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "penstock/result.h"
#include "record/record_scanner.h"

namespace penstock {

/// What is around the payload of a record.
inline constexpr std::size_t kTfrecordHeaderBytes = 12;
inline constexpr std::size_t kTfrecordBytes = kTfrecordHeaderBytes + 4;

/// Checks lengths and their checksums; need not see payloads.
std::unique_ptr<RecordScanner> make_tfrecord_scanner();

/// The payload of one whole record, whose checksums are checked.
Result<std::string_view> tfrecord_payload(std::string_view record);

void append_tfrecord(std::string& out, std::string_view payload);

}  // namespace penstock
