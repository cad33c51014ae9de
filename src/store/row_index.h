#pragma once
// Where the rows of a folder are: row number to file and offset, 16 bytes per row.

#include <array>
#include <atomic>
#include <bitset>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>

#include "base/mutex.h"

namespace penstock {

struct RowPlace {
  std::uint64_t offset = 0;  // of the frame
  std::uint32_t file = 0;
  std::uint32_t payload_bytes = 0;
  bool operator==(const RowPlace&) const = default;
};

/// Thread-safe.
class RowIndex {
 public:
  struct Found {
    RowPlace place;
    bool verified = false;  // this process has compared the payload with its checksum
  };
  [[nodiscard]] std::optional<Found> find(std::uint64_t number);
  [[nodiscard]] bool has(std::uint64_t number);
  /// Adds a row; `replace` decides whether it takes the place of an earlier one.
  void add(std::uint64_t number, const RowPlace& place, bool replace);
  /// Both are no-ops if the row is elsewhere by now.
  void set_verified(std::uint64_t number, const RowPlace& place);
  void remove(std::uint64_t number, const RowPlace& place);
  [[nodiscard]] std::uint64_t rows() const { return rows_.load(std::memory_order_relaxed); }
  /// Calls `visit(number, place)` for all rows, in any order.
  template <typename Visit>
  void for_each(Visit visit) {
    for (Part& part : parts_) {
      Lock lock(part.mutex);
      for (const auto& [chunk, rows] : part.chunks)
        for (std::size_t i = 0; i < kChunkRows; ++i)
          if (rows->present[i]) visit(chunk * kChunkRows + i, rows->places[i]);
    }
  }

 private:
  static constexpr std::size_t kChunkRows = 1024;
  static constexpr std::size_t kParts = 16;
  struct Chunk {
    std::bitset<kChunkRows> present;
    std::bitset<kChunkRows> verified;
    std::array<RowPlace, kChunkRows> places;
  };
  struct Part {
    Mutex mutex;
    std::unordered_map<std::uint64_t, std::unique_ptr<Chunk>> chunks PENSTOCK_GUARDED_BY(mutex);
  };
  Part& part_of(std::uint64_t chunk) { return parts_[chunk % kParts]; }

  std::array<Part, kParts> parts_;
  std::atomic<std::uint64_t> rows_{0};
};

}  // namespace penstock
