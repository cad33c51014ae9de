#pragma once
// Memory for what lives while one block is computed. One per thread; frames nest like calls.

#include <cstddef>
#include <memory>
#include <vector>

namespace penstock {

class Scratch {
 public:
  /// Memory aligned to 64, uninitialised, valid until the frame around it ends.
  std::byte* allocate(std::size_t bytes);
  template <typename T>
  T* array(std::size_t count) {
    static_assert(std::is_trivially_destructible_v<T>);
    return reinterpret_cast<T*>(allocate(count * sizeof(T)));
  }

  /// Gives back, at its end, all that was allocated since its start.
  class Frame {
   public:
    explicit Frame(Scratch& scratch)
        : scratch_(scratch), chunk_(scratch.chunk_), used_(scratch.used_) {}
    ~Frame() {
      scratch_.chunk_ = chunk_;
      scratch_.used_ = used_;
    }
    Frame(const Frame&) = delete;
    Frame& operator=(const Frame&) = delete;

   private:
    Scratch& scratch_;
    std::size_t chunk_;
    std::size_t used_;
  };

 private:
  struct Free {
    void operator()(std::byte* data) const;
  };
  struct Chunk {
    std::unique_ptr<std::byte, Free> data;
    std::size_t size;
  };
  std::vector<Chunk> chunks_;
  std::size_t chunk_ = 0;  // the one in use
  std::size_t used_ = 0;   // of it
};

}  // namespace penstock
