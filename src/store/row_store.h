#pragma once
// Rows by number that outlive the block they were computed for: what `cache()` stores. In memory
// (memory_rows.h), in a folder (disk_rows.h), or first one and then the other (spilled_rows.h).

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "penstock/block.h"

namespace penstock {

/// Thread-safe. Every row that `get` returns has the bytes that were put; a row that cannot be
/// returned is missing, for whatever reason, and computed again by the caller.
class RowStore {
 public:
  RowStore() = default;
  virtual ~RowStore() = default;
  RowStore(const RowStore&) = delete;
  RowStore& operator=(const RowStore&) = delete;

  /// Copies the stored rows to `out`, row i of which is number numbers[i], for each i of `some`.
  /// Returns those i of which there is no row; what is in these rows of `out` is undefined.
  virtual std::vector<std::uint32_t> get(std::span<const std::uint64_t> numbers,
                                         std::span<const std::uint32_t> some,
                                         const BlockView& out) = 0;
  /// The same for all rows of `out`.
  std::vector<std::uint32_t> get(std::span<const std::uint64_t> numbers, const BlockView& out);
  /// True if `get` would probably return the row.
  [[nodiscard]] virtual bool has(std::uint64_t number) = 0;
  /// True if it has every row that there is; false if that is unknown.
  [[nodiscard]] virtual bool has_all() const { return false; }
  /// Stores the rows of `block`, except those already stored and those for which there is no room.
  virtual void put(std::span<const std::uint64_t> numbers, const BlockView& block) = 0;
  /// True if further rows are not stored: waiting for another thread to compute one is pointless.
  [[nodiscard]] virtual bool full() const = 0;
  /// "12 of 100 rows on disk".
  [[nodiscard]] virtual std::string text() const = 0;

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

 private:
  struct Claims {
    Mutex mutex;
    Condition computed;
    std::unordered_map<std::uint64_t, const void*> of PENSTOCK_GUARDED_BY(mutex);
  };
  static constexpr std::size_t kParts = 16;
  Claims& claims_of(std::uint64_t number) { return claims_[number / 256 % kParts]; }

  std::array<Claims, kParts> claims_;
};

}  // namespace penstock
