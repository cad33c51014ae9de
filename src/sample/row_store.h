#pragma once
// Rows kept in memory by number: what `cache()` fills. Thread-safe; what is in stays in.

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "penstock/block.h"

namespace penstock {

class RowStore {
 public:
  explicit RowStore(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}

  /// Copies the rows that are in to `out` (row i is number numbers[i]) and returns the others' i.
  std::vector<std::uint32_t> get(std::span<const std::uint64_t> numbers, const BlockView& out);
  [[nodiscard]] bool has(std::uint64_t number);
  /// Keeps the rows of `block` unless they are in already or the limit is reached.
  void put(std::span<const std::uint64_t> numbers, const BlockView& block);

  [[nodiscard]] std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::size_t kChunkRows = 256;
  static constexpr std::size_t kShards = 16;
  struct Chunk;
  struct ChunkFree {
    void operator()(Chunk* chunk) const;
  };
  struct Shard {
    Mutex mutex;
    std::unordered_map<std::uint64_t, std::unique_ptr<Chunk, ChunkFree>> chunks
        PENSTOCK_GUARDED_BY(mutex);
  };
  Shard& shard_of(std::uint64_t chunk) { return shards_[chunk % kShards]; }

  const std::uint64_t bytes_max_;
  std::atomic<std::uint64_t> bytes_{0};
  std::array<Shard, kShards> shards_;
};

}  // namespace penstock
