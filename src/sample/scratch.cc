#include "sample/scratch.h"

#include <algorithm>
#include <new>

namespace penstock {
namespace {

constexpr std::size_t kAlign = 64;
constexpr std::size_t kChunkBytes = 64 * 1024;

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
    const std::size_t chunk_size = std::max(size, kChunkBytes);
    chunks_.push_back({std::unique_ptr<std::byte, Free>(static_cast<std::byte*>(
                           ::operator new(chunk_size, std::align_val_t(kAlign)))),
                       chunk_size});
    used_ = 0;
  }
  std::byte* const data = chunks_[chunk_].data.get() + used_;
  used_ += size;
  return data;
}

}  // namespace penstock
