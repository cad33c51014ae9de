#pragma once
// The chunks of a table that are loaded, within a limit of memory.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "penstock/result.h"
#include "source/arrow_table.h"

namespace penstock {

/// Thread-safe. The chunks used longest ago are dropped when there are too many, except those in
/// use, which are in memory anyway, and one for each thread that has used chunks at the same time:
/// otherwise threads would drop each other's chunks between two blocks.
class TableCache {
 public:
  using TablePtr = std::shared_ptr<const ArrowTable>;
  /// Returns false once the chunk is not needed any more.
  using Wanted = std::function<bool()>;
  /// Loads a chunk; called without locks. Does not throw.
  using Load = std::function<Result<TablePtr>(std::uint64_t chunk, const Wanted& wanted)>;

  TableCache(std::uint64_t bytes_max, Load load) : load_(std::move(load)), bytes_max_(bytes_max) {}

  /// A thread that uses chunks; `get` and the chunks it returned are used within.
  class User {
   public:
    explicit User(TableCache& cache);
    ~User();
    User(const User&) = delete;
    User& operator=(const User&) = delete;

   private:
    TableCache& cache_;
  };

  enum class Effort : std::uint8_t {
    look,  // return only what is loaded
    load,  // load it, unless another thread does
    wait,  // wait for the other thread, too
  };
  /// The chunk, or null if it takes more effort. Returns a cancelled failure once `wanted()` is
  /// false, which is asked while waiting. A failed chunk is loaded again at its 2nd, 4th, 8th, ...
  /// request; the requests in between have the same failure, unless that may pass.
  Result<TablePtr> get(std::uint64_t chunk, Effort effort, const Wanted& wanted);

  [[nodiscard]] std::uint64_t bytes_max() const { return bytes_max_; }
  /// Of the chunks that are kept now.
  [[nodiscard]] std::uint64_t bytes();

 private:
  struct Chunk {
    TablePtr table = nullptr;
    std::list<std::uint64_t>::iterator place = {};  // in recent_, if it is loaded
    std::uint64_t load_number = 0;                  // of the load that runs; 0: none
    std::optional<Failure> failure = {};
    std::uint64_t requests = 0;  // since the first failure
  };

  [[nodiscard]] bool fails_again(Chunk& chunk) PENSTOCK_REQUIRES(mutex_);
  Result<TablePtr> load_now(std::uint64_t chunk, std::uint64_t load_number, const Wanted& wanted);
  void keep(std::uint64_t number, Chunk& chunk, const TablePtr& table) PENSTOCK_REQUIRES(mutex_);
  /// Moves chunks to `dropped`, which must be destroyed without the lock.
  void drop_old(std::vector<TablePtr>& dropped) PENSTOCK_REQUIRES(mutex_);

  const Load load_;
  const std::uint64_t bytes_max_;

  Mutex mutex_;
  Condition loaded_;
  std::unordered_map<std::uint64_t, Chunk> chunks_ PENSTOCK_GUARDED_BY(mutex_);
  std::list<std::uint64_t> recent_ PENSTOCK_GUARDED_BY(mutex_);  // the last used one first
  std::uint64_t bytes_ PENSTOCK_GUARDED_BY(mutex_) = 0;
  std::uint64_t loads_ PENSTOCK_GUARDED_BY(mutex_) = 0;
  std::size_t users_ PENSTOCK_GUARDED_BY(mutex_) = 0;
  std::size_t users_max_ PENSTOCK_GUARDED_BY(mutex_) = 1;
};

}  // namespace penstock
