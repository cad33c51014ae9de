// tested in src/store/memory_rows_test.cc
#include "store/row_store.h"

#include <chrono>
#include <numeric>

namespace penstock {
namespace {

/// Differs between threads that are alive at the same time.
const void* this_thread() {
  thread_local const char here = 0;
  return &here;
}

}  // namespace

std::vector<std::uint32_t> RowStore::get(std::span<const std::uint64_t> numbers,
                                         const BlockView& out) {
  std::vector<std::uint32_t> all(numbers.size());
  std::iota(all.begin(), all.end(), 0U);
  return get(numbers, all, out);
}

RowStore::Claim::Claim(RowStore& store, std::span<const std::uint64_t> numbers,
                       std::span<const std::uint32_t> missing)
    : store_(store), numbers_(numbers) {
  if (store_.full()) {
    rows_.assign(missing.begin(), missing.end());
    return;
  }
  const void* const self = this_thread();
  for (const std::uint32_t row : missing) {
    Claims& claims = store_.claims_of(numbers[row]);
    Lock lock(claims.mutex);
    const auto [claim, fresh] = claims.of.try_emplace(numbers[row], self);
    (fresh || claim->second == self ? rows_ : others_).push_back(row);
  }
}

RowStore::Claim::~Claim() {
  const void* const self = this_thread();
  for (const std::uint32_t row : rows_) {
    Claims& claims = store_.claims_of(numbers_[row]);
    Lock lock(claims.mutex);
    const auto found = claims.of.find(numbers_[row]);
    if (found == claims.of.end() || found->second != self) continue;
    claims.of.erase(found);
    claims.computed.notify_all();
  }
}

bool RowStore::wait_for(std::uint64_t number, const std::function<bool()>& wanted) {
  constexpr std::chrono::milliseconds kLook{50};
  constexpr int kLooksMax = 600;
  Claims& claims = claims_of(number);
  Lock lock(claims.mutex);
  for (int looks = 0; claims.of.contains(number); ++looks) {
    if (looks == kLooksMax) claims.of.erase(number);
    if (!wanted()) return false;
    if (looks < kLooksMax) claims.computed.wait_for(claims.mutex, kLook);
  }
  return true;
}

}  // namespace penstock
