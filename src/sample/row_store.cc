#include "sample/row_store.h"

#include <bitset>

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

/// What a row holds outside of the dense columns.
std::uint64_t varying_bytes_of(const BlockView& block, std::size_t row) {
  std::uint64_t bytes = 0;
  for (const Column& column : block.columns)
    if (!column.dense()) bytes += column.tensors[row].raw().size();
  if (block.samples != nullptr)
    for (const Tensor& leaf : block.samples[row].leaves()) bytes += leaf.raw().size();
  return bytes;
}

}  // namespace

void RowStore::ChunkFree::operator()(Chunk* chunk) const {
  delete chunk;
}

std::vector<std::uint32_t> RowStore::get(std::span<const std::uint64_t> numbers,
                                         const BlockView& out) {
  std::vector<std::uint32_t> missing;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::uint64_t id = numbers[i] / kChunkRows;
    const std::size_t row = numbers[i] % kChunkRows;
    Shard& shard = shard_of(id);
    Lock lock(shard.mutex);
    const auto found = shard.chunks.find(id);
    if (found == shard.chunks.end() || !found->second || !found->second->present[row]) {
      missing.push_back(static_cast<std::uint32_t>(i));
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
      // Memory is taken by the chunk, so it is counted by the chunk.
      const std::uint64_t chunk_bytes = dense_bytes * kChunkRows;
      if (bytes_.fetch_add(chunk_bytes) + chunk_bytes > bytes_max_) {
        bytes_.fetch_sub(chunk_bytes);
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
      return;
    }
    copy_rows(block, i, chunk->rows->view(), row, 1);
    chunk->present[row] = true;
  }
}

}  // namespace penstock
