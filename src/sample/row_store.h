#pragma once
// Rows in memory by number: the storage of `cache()`. Thread-safe; rows are never removed.

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
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

  /// Copies the stored rows to `out` (row i is number numbers[i]) and returns i of the others.
  std::vector<std::uint32_t> get(std::span<const std::uint64_t> numbers, const BlockView& out);
  /// The same for rows `some` of `out` only.
  std::vector<std::uint32_t> get(std::span<const std::uint64_t> numbers,
                                 std::span<const std::uint32_t> some, const BlockView& out);

  /// Rows that the calling thread computes; no other thread computes them at the same time.
  class Claim {
   public:
    /// Of the rows `missing`, claims those that no other thread computes; if the store is full all
    /// of them, since no thread could reuse what another one computes.
    Claim(RowStore& store, std::span<const std::uint64_t> numbers,
          std::span<const std::uint32_t> missing);
    ~Claim();
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;
    [[nodiscard]] std::span<const std::uint32_t> rows() const { return rows_; }
    /// The rows of `missing` that other threads compute.
    [[nodiscard]] const std::vector<std::uint32_t>& others() const { return others_; }

   private:
    RowStore& store_;
    std::span<const std::uint64_t> numbers_;
    std::vector<std::uint32_t> rows_;
    std::vector<std::uint32_t> others_;
  };
  /// Waits until no other thread computes row `number`. Returns false once `wanted()` returns
  /// false. Call it without a claim, so that no two threads wait for each other. A thread that has
  /// not finished after 30 s (it may be stuck forever) loses its claim.
  bool wait_for(std::uint64_t number, const std::function<bool()>& wanted);
  [[nodiscard]] bool has(std::uint64_t number);
  /// Stores the rows of `block`, except those already stored, until the limit is reached.
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
    Condition computed;
    std::unordered_map<std::uint64_t, const void*> claims PENSTOCK_GUARDED_BY(mutex);
    std::unordered_map<std::uint64_t, std::unique_ptr<Chunk, ChunkFree>> chunks
        PENSTOCK_GUARDED_BY(mutex);
  };
  Shard& shard_of(std::uint64_t chunk) { return shards_[chunk % kShards]; }

  const std::uint64_t bytes_max_;
  std::atomic<std::uint64_t> bytes_{0};
  std::atomic<bool> full_{false};  // a row did not fit
  std::array<Shard, kShards> shards_;
};

}  // namespace penstock
