// tested in src/store/disk_rows_test.cc
#include "store/row_index.h"

namespace penstock {

std::optional<RowIndex::Found> RowIndex::find(std::uint64_t number) {
  const std::size_t row = number % kChunkRows;
  Part& part = part_of(number / kChunkRows);
  Lock lock(part.mutex);
  const auto found = part.chunks.find(number / kChunkRows);
  if (found == part.chunks.end() || !found->second->present[row]) return std::nullopt;
  return Found{found->second->places[row], found->second->verified[row]};
}

bool RowIndex::has(std::uint64_t number) {
  Part& part = part_of(number / kChunkRows);
  Lock lock(part.mutex);
  const auto found = part.chunks.find(number / kChunkRows);
  return found != part.chunks.end() && found->second->present[number % kChunkRows];
}

void RowIndex::add(std::uint64_t number, const RowPlace& place, bool replace) {
  const std::size_t row = number % kChunkRows;
  Part& part = part_of(number / kChunkRows);
  Lock lock(part.mutex);
  auto& chunk = part.chunks[number / kChunkRows];
  if (!chunk) chunk = std::make_unique<Chunk>();
  if (chunk->present[row] && !replace) return;
  if (!chunk->present[row]) rows_.fetch_add(1, std::memory_order_relaxed);
  chunk->present[row] = true;
  chunk->verified[row] = false;
  chunk->places[row] = place;
}

void RowIndex::set_verified(std::uint64_t number, const RowPlace& place) {
  const std::size_t row = number % kChunkRows;
  Part& part = part_of(number / kChunkRows);
  Lock lock(part.mutex);
  const auto found = part.chunks.find(number / kChunkRows);
  if (found == part.chunks.end()) return;
  if (found->second->places[row] == place) found->second->verified[row] = true;
}

void RowIndex::remove(std::uint64_t number, const RowPlace& place) {
  const std::size_t row = number % kChunkRows;
  Part& part = part_of(number / kChunkRows);
  Lock lock(part.mutex);
  const auto found = part.chunks.find(number / kChunkRows);
  if (found == part.chunks.end() || !found->second->present[row]) return;
  if (!(found->second->places[row] == place)) return;
  found->second->present[row] = false;
  rows_.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace penstock
