#include "source/table_cache.h"

#include <algorithm>
#include <bit>
#include <chrono>

#include "base/cancelled.h"

namespace penstock {

TableCache::User::User(TableCache& cache) : cache_(cache) {
  Lock lock(cache_.mutex_);
  cache_.users_max_ = std::max(cache_.users_max_, ++cache_.users_);
}

TableCache::User::~User() {
  Lock lock(cache_.mutex_);
  --cache_.users_;
}

std::uint64_t TableCache::bytes() {
  Lock lock(mutex_);
  return bytes_;
}

bool TableCache::fails_again(Chunk& chunk) {
  if (!chunk.failure) return false;
  ++chunk.requests;
  return !std::has_single_bit(chunk.requests);
}

Result<TableCache::TablePtr> TableCache::get(std::uint64_t chunk, Effort effort,
                                             const Wanted& wanted) {
  // A thread that has not finished after 30 s may be stuck forever: another one loads the chunk.
  constexpr std::chrono::milliseconds kLook{50};
  constexpr int kLooksMax = 600;
  std::uint64_t load_number = 0;
  {
    Lock lock(mutex_);
    std::uint64_t waited_for = 0;
    for (int looks = 0;;) {
      Chunk& found = chunks_[chunk];  // stays where it is when others are added
      if (found.table != nullptr) {
        recent_.splice(recent_.begin(), recent_, found.place);
        return found.table;
      }
      if (effort == Effort::look) return TablePtr();
      if (found.load_number == 0 || looks == kLooksMax) {
        if (fails_again(found)) return *found.failure;
        load_number = found.load_number = ++loads_;
        break;
      }
      if (effort == Effort::load) return TablePtr();
      if (!wanted()) return cancelled(0);
      looks = found.load_number == waited_for ? looks + 1 : 0;
      waited_for = found.load_number;
      loaded_.wait_for(mutex_, kLook);
    }
  }
  return load_now(chunk, load_number, wanted);
}

Result<TableCache::TablePtr> TableCache::load_now(std::uint64_t chunk, std::uint64_t load_number,
                                                  const Wanted& wanted) {
  Result<TablePtr> table = load_(chunk, wanted);
  std::vector<TablePtr> dropped;
  Lock lock(mutex_);
  Chunk& found = chunks_[chunk];
  if (found.load_number == load_number) found.load_number = 0;
  if (table) {
    if (found.table == nullptr) keep(chunk, found, *table);
    drop_old(dropped);
  } else if (!found.failure && table.failure().kind == Failure::Kind::data) {
    found.failure = table.failure();
    found.requests = 1;
  }
  loaded_.notify_all();
  return table;
}

void TableCache::keep(std::uint64_t number, Chunk& chunk, const TablePtr& table) {
  chunk.table = table;
  chunk.failure.reset();
  recent_.push_front(number);
  chunk.place = recent_.begin();
  bytes_ += table->bytes();
}

void TableCache::drop_old(std::vector<TablePtr>& dropped) {
  for (auto at = recent_.end(); at != recent_.begin() && bytes_ > bytes_max_;) {
    if (recent_.size() <= users_max_) return;
    --at;
    const auto found = chunks_.find(*at);
    if (found->second.table.use_count() > 1) continue;
    bytes_ -= found->second.table->bytes();
    dropped.push_back(std::move(found->second.table));
    chunks_.erase(found);
    at = recent_.erase(at);
  }
}

}  // namespace penstock
