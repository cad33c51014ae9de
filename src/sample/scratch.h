#pragma once
// Memory for temporary data while one block is computed. One per thread; frames nest like calls.

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace penstock {

class Scratch {
 public:
  /// Memory aligned to 64, uninitialized, valid until the surrounding frame ends.
  std::byte* allocate(std::size_t bytes);
  template <typename T>
  T* array(std::size_t count) {
    static_assert(std::is_trivially_destructible_v<T>);
    return reinterpret_cast<T*>(allocate(count * sizeof(T)));
  }

  /// Memory that it holds now. Between outermost frames that is at most one chunk of kIdleBytesMax,
  /// plus what was allocated outside of frames: records of growing size do not accumulate.
  [[nodiscard]] std::size_t bytes() const;
  static constexpr std::size_t kIdleBytesMax = std::size_t{64} << 20;

  /// Its destructor frees everything allocated since its construction.
  class Frame {
   public:
    explicit Frame(Scratch& scratch)
        : scratch_(scratch), chunk_(scratch.chunk_), used_(scratch.used_) {
      ++scratch_.frames_;
    }
    ~Frame() {
      scratch_.chunk_ = chunk_;
      scratch_.used_ = used_;
      if (--scratch_.frames_ == 0) scratch_.trim();
    }
    Frame(const Frame&) = delete;
    Frame& operator=(const Frame&) = delete;

   private:
    Scratch& scratch_;
    std::size_t chunk_;
    std::size_t used_;
  };

 private:
  /// Keeps the largest unused chunk, unless it is too large.
  void trim();

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
  std::size_t frames_ = 0;
};

/// Scratch memory that threads borrow for a task each. Thread-safe.
class ScratchStock {
 public:
  /// The memory of one task; returned by the destructor.
  class Loan {
   public:
    explicit Loan(ScratchStock& stock) : stock_(stock), scratch_(stock.take()) {}
    ~Loan() { stock_.put_back(std::move(scratch_)); }
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    [[nodiscard]] Scratch& scratch() const { return *scratch_; }

   private:
    ScratchStock& stock_;
    std::unique_ptr<Scratch> scratch_;
  };

 private:
  std::unique_ptr<Scratch> take();
  void put_back(std::unique_ptr<Scratch> scratch);

  Mutex mutex_;
  std::vector<std::unique_ptr<Scratch>> unused_ PENSTOCK_GUARDED_BY(mutex_);
};

}  // namespace penstock
