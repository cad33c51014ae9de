#pragma once
// Batches by index, like Keras' Sequence: a class that users derive from, with the number of
// batches and a function that returns each one. `Dataset::from_sequence` turns it into a dataset.

#include <cstdint>

#include <penstock/sample.h>

namespace penstock {

/// Implementations of `get` must be thread-safe. An exception from `get` fails the batch: a loader
/// throws it as a SampleError with `cause()`. An exception from a hook is thrown by the call of the
/// loader that needed the hook.
class Sequence {
 public:
  virtual ~Sequence() = default;
  /// Number of batches in a pass. Called once, by `from_sequence`.
  [[nodiscard]] virtual std::uint64_t size() const = 0;
  /// Returns global batch `index`: tensors with the rows as first dimension. The number of rows may
  /// differ between batches, the rest of the shape and the dtypes may not. Called from several
  /// threads at the same time, once per index of a pass; again only after an error or `stop`, for
  /// `replay`, and for one index at the very end, to check it. Must depend on the index alone.
  virtual Sample get(std::uint64_t index) = 0;
  /// The hooks are called in turn by the thread that calls `next`, `stop` or the destructor of the
  /// iterator, never while a `get` of the pass is running. `on_epoch_end` is called when the next
  /// epoch begins or the iterator ends. A run that resumes in epoch n calls both n times first, so
  /// that a new object reaches the same state as the old one.
  virtual void on_epoch_begin() { plain_begin_ = true; }
  virtual void on_epoch_end() { plain_end_ = true; }

 private:
  friend class SequenceSource;
  bool plain_begin_ = false;  // the hook is the one above, which does nothing
  bool plain_end_ = false;
};

}  // namespace penstock
