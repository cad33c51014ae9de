#pragma once
// Scanning a whole text, in pieces of any size.

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "record/record_scanner.h"

namespace penstock {

struct Scanned {
  std::string preface;
  std::vector<std::string> records;
  std::string damage;
  bool operator==(const Scanned&) const = default;
};

inline Scanned scan_all(RecordScanner& scanner, std::string_view text, std::size_t piece_bytes) {
  std::vector<std::uint64_t> starts;
  std::uint64_t at = 0;
  while (at < text.size()) {
    const std::string_view piece = text.substr(at, piece_bytes);
    at += piece.size();
    const std::uint64_t skipped = scanner.scan(at - piece.size(), piece, starts);
    at += std::min<std::uint64_t>(skipped, text.size() - at);
  }
  const ScanEnd end = scanner.finish(text.size(), starts);
  Scanned scanned;
  scanned.damage = end.damage;
  scanned.preface = text.substr(0, starts.empty() ? text.size() : starts.front());
  starts.push_back(end.end);
  for (std::size_t i = 0; i + 1 < starts.size(); ++i)
    scanned.records.emplace_back(text.substr(starts[i], starts[i + 1] - starts[i]));
  return scanned;
}

}  // namespace penstock
