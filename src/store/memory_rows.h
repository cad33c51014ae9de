#pragma once
// Rows in memory. Rows are never removed.

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "store/row_store.h"

namespace penstock {

class MemoryRows final : public RowStore {
 public:
  /// With a `title`, reports when the limit is reached.
  explicit MemoryRows(std::uint64_t bytes_max, std::string title = {})
      : bytes_max_(bytes_max), title_(std::move(title)) {}

  using RowStore::get;
  std::vector<std::uint32_t> get(std::span<const std::uint64_t> numbers,
                                 std::span<const std::uint32_t> some,
                                 const BlockView& out) override;
  [[nodiscard]] bool has(std::uint64_t number) override;
  void put(std::span<const std::uint64_t> numbers, const BlockView& block) override;
  [[nodiscard]] bool full() const override { return full_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::string text() const override;

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

  void stop_storing();

  const std::uint64_t bytes_max_;
  const std::string title_;
  std::atomic<std::uint64_t> bytes_{0};
  std::atomic<std::uint64_t> rows_{0};
  std::atomic<bool> full_{false};  // a row did not fit
  std::array<Shard, kShards> shards_;
};

}  // namespace penstock
