#include "store/memory_rows.h"

#include <fmt/format.h>

#include <bitset>

#include "base/report.h"
#include "sample/rows.h"

namespace penstock {

/// A run of consecutive numbers; its block has room for all of them.
struct MemoryRows::Chunk {
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

}  // namespace

void MemoryRows::ChunkFree::operator()(Chunk* chunk) const {
  delete chunk;
}

std::vector<std::uint32_t> MemoryRows::get(std::span<const std::uint64_t> numbers,
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

bool MemoryRows::has(std::uint64_t number) {
  const std::uint64_t id = number / kChunkRows;
  Shard& shard = shard_of(id);
  Lock lock(shard.mutex);
  const auto found = shard.chunks.find(id);
  return found != shard.chunks.end() && found->second &&
         found->second->present[number % kChunkRows];
}

void MemoryRows::put(std::span<const std::uint64_t> numbers, const BlockView& block) {
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
        shard.chunks.erase(id);
        return stop_storing();
      }
      try {
        std::unique_ptr<Chunk, ChunkFree> fresh(new Chunk);
        fresh->spec = *block.spec;
        fresh->rows = std::make_unique<ScratchBlock>(fresh->spec, kChunkRows, fresh->memory);
        chunk = std::move(fresh);
      } catch (...) {
        bytes_.fetch_sub(chunk_bytes);
        shard.chunks.erase(id);
        throw;
      }
    }
    if (chunk->present[row]) continue;
    const std::uint64_t varying_bytes = varying_bytes_of(block, i);
    if (varying_bytes > 0 && bytes_.fetch_add(varying_bytes) + varying_bytes > bytes_max_) {
      bytes_.fetch_sub(varying_bytes);
      return stop_storing();
    }
    copy_rows(block, i, chunk->rows->view(), row, 1);
    chunk->present[row] = true;
    rows_.fetch_add(1, std::memory_order_relaxed);
  }
}

void MemoryRows::stop_storing() {
  if (full_.exchange(true) || title_.empty()) return;
  report(
      fmt::format("{}: it has {}, {} MiB, half of the memory that was available; the others are "
                  "computed in every pass: store them in a folder, or set bytes_max",
                  title_, text(), bytes() >> 20));
}

std::string MemoryRows::text() const {
  return fmt::format("{} rows in memory", rows_.load(std::memory_order_relaxed));
}

}  // namespace penstock
