#include "sample/row_store.h"

#include <bitset>
#include <numeric>

#include "sample/rows.h"

namespace penstock {

/// A run of consecutive numbers; its block has room for all of them.
struct RowStore::Chunk {
  std::bitset<kChunkRows> present;
  ElementSpec spec;
  Scratch memory;
  std::unique_ptr<ScratchBlock> rows;
};

namespace {

/// The part of a row outside the dense columns.
std::uint64_t varying_bytes_of(const BlockView& block, std::size_t row) {
  std::uint64_t bytes = 0;
  for (const Column& column : block.columns)
    if (!column.dense()) bytes += column.tensors[row].raw().size();
  if (block.samples != nullptr)
    for (const Tensor& leaf : block.samples[row].leaves()) bytes += leaf.raw().size();
  return bytes;
}

/// Differs between threads that are alive at the same time.
const void* this_thread() {
  thread_local const char here = 0;
  return &here;
}

}  // namespace

void RowStore::ChunkFree::operator()(Chunk* chunk) const {
  delete chunk;
}

std::vector<std::uint32_t> RowStore::get(std::span<const std::uint64_t> numbers,
                                         const BlockView& out) {
  std::vector<std::uint32_t> all(numbers.size());
  std::iota(all.begin(), all.end(), 0U);
  return get(numbers, all, out);
}

std::vector<std::uint32_t> RowStore::get(std::span<const std::uint64_t> numbers,
                                         std::span<const std::uint32_t> some,
                                         const BlockView& out) {
  std::vector<std::uint32_t> missing;
  for (const std::uint32_t i : some) {
    const std::uint64_t id = numbers[i] / kChunkRows;
    const std::size_t row = numbers[i] % kChunkRows;
    Shard& shard = shard_of(id);
    Lock lock(shard.mutex);
    const auto found = shard.chunks.find(id);
    if (found == shard.chunks.end() || !found->second || !found->second->present[row]) {
      missing.push_back(i);
    } else {
      copy_rows(found->second->rows->view(), row, out, i, 1);
    }
  }
  return missing;
}

bool RowStore::has(std::uint64_t number) {
  const std::uint64_t id = number / kChunkRows;
  Shard& shard = shard_of(id);
  Lock lock(shard.mutex);
  const auto found = shard.chunks.find(id);
  return found != shard.chunks.end() && found->second &&
         found->second->present[number % kChunkRows];
}

void RowStore::put(std::span<const std::uint64_t> numbers, const BlockView& block) {
  std::uint64_t dense_bytes = sizeof(std::uint64_t) * 2;
  for (const Column& column : block.columns) dense_bytes += column.row_bytes;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::uint64_t id = numbers[i] / kChunkRows;
    const std::size_t row = numbers[i] % kChunkRows;
    Shard& shard = shard_of(id);
    Lock lock(shard.mutex);
    auto& chunk = shard.chunks[id];
    if (!chunk) {
      // Memory is allocated by the chunk, so it is counted by the chunk.
      const std::uint64_t chunk_bytes = dense_bytes * kChunkRows;
      if (bytes_.fetch_add(chunk_bytes) + chunk_bytes > bytes_max_) {
        bytes_.fetch_sub(chunk_bytes);
        full_ = true;
        shard.chunks.erase(id);
        return;
      }
      chunk.reset(new Chunk);
      chunk->spec = *block.spec;
      chunk->rows = std::make_unique<ScratchBlock>(chunk->spec, kChunkRows, chunk->memory);
    }
    if (chunk->present[row]) continue;
    const std::uint64_t varying_bytes = varying_bytes_of(block, i);
    if (varying_bytes > 0 && bytes_.fetch_add(varying_bytes) + varying_bytes > bytes_max_) {
      bytes_.fetch_sub(varying_bytes);
      full_ = true;
      return;
    }
    copy_rows(block, i, chunk->rows->view(), row, 1);
    chunk->present[row] = true;
  }
}

RowStore::Claim::Claim(RowStore& store, std::span<const std::uint64_t> numbers,
                       std::span<const std::uint32_t> missing)
    : store_(store), numbers_(numbers) {
  if (store_.full_) {
    rows_.assign(missing.begin(), missing.end());
    return;
  }
  const void* const self = this_thread();
  for (const std::uint32_t row : missing) {
    Shard& shard = store_.shard_of(numbers[row] / kChunkRows);
    Lock lock(shard.mutex);
    const auto [claim, fresh] = shard.claims.try_emplace(numbers[row], self);
    (fresh || claim->second == self ? rows_ : others_).push_back(row);
  }
}

RowStore::Claim::~Claim() {
  const void* const self = this_thread();
  for (const std::uint32_t row : rows_) {
    Shard& shard = store_.shard_of(numbers_[row] / kChunkRows);
    Lock lock(shard.mutex);
    const auto found = shard.claims.find(numbers_[row]);
    if (found == shard.claims.end() || found->second != self) continue;
    shard.claims.erase(found);
    shard.computed.notify_all();
  }
}

bool RowStore::wait_for(std::uint64_t number, const std::function<bool()>& wanted) {
  constexpr std::chrono::milliseconds kLook{50};
  constexpr int kLooksMax = 600;
  Shard& shard = shard_of(number / kChunkRows);
  Lock lock(shard.mutex);
  for (int looks = 0; shard.claims.contains(number); ++looks) {
    if (looks == kLooksMax) shard.claims.erase(number);
    if (!wanted()) return false;
    if (looks < kLooksMax) shard.computed.wait_for(shard.mutex, kLook);
  }
  return true;
}

}  // namespace penstock
