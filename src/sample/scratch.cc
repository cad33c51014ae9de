#include "sample/scratch.h"

#include <algorithm>
#include <new>

namespace penstock {
namespace {

constexpr std::size_t kAlign = 64;
constexpr std::size_t kChunkBytes = 64 * 1024;
constexpr std::size_t kGrowthMax = std::size_t{16} << 20;

}  // namespace

void Scratch::Free::operator()(std::byte* data) const {
  ::operator delete(data, std::align_val_t(kAlign));
}

std::byte* Scratch::allocate(std::size_t bytes) {
  const std::size_t size = (bytes + kAlign - 1) / kAlign * kAlign;
  while (chunk_ < chunks_.size() && used_ + size > chunks_[chunk_].size) {
    ++chunk_;
    used_ = 0;
  }
  if (chunk_ == chunks_.size()) {
    // As much as all chunks before: few chunks, and at most about twice what is needed.
    const std::size_t chunk_size =
        std::max({size, kChunkBytes, std::min(this->bytes(), kGrowthMax)});
    chunks_.push_back({std::unique_ptr<std::byte, Free>(static_cast<std::byte*>(
                           ::operator new(chunk_size, std::align_val_t(kAlign)))),
                       chunk_size});
    used_ = 0;
  }
  std::byte* const data = chunks_[chunk_].data.get() + used_;
  used_ += size;
  return data;
}

std::size_t Scratch::bytes() const {
  std::size_t bytes = 0;
  for (const Chunk& chunk : chunks_) bytes += chunk.size;
  return bytes;
}

void Scratch::trim() {
  const std::size_t first = chunk_ + (used_ > 0 ? 1 : 0);  // the first unused one
  if (chunks_.size() <= first) return;
  const auto unused = chunks_.begin() + static_cast<std::ptrdiff_t>(first);
  if (chunks_.size() == first + 1 && unused->size <= kIdleBytesMax) return;
  const auto largest = std::ranges::max_element(unused, chunks_.end(), {}, &Chunk::size);
  if (largest->size <= kIdleBytesMax) {
    std::iter_swap(unused, largest);
    chunks_.erase(unused + 1, chunks_.end());
  } else {
    chunks_.erase(unused, chunks_.end());
  }
}

std::unique_ptr<Scratch> ScratchStock::take() {
  Lock lock(mutex_);
  if (unused_.empty()) return std::make_unique<Scratch>();
  std::unique_ptr<Scratch> last = std::move(unused_.back());
  unused_.pop_back();
  return last;
}

void ScratchStock::put_back(std::unique_ptr<Scratch> scratch) {
  Lock lock(mutex_);
  unused_.push_back(std::move(scratch));
}

}  // namespace penstock
