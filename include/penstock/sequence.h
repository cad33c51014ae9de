#pragma once
// Batches by index, in the manner of Keras' Sequence: a class of the user's that says how many
// batches there are and gives each one. `Dataset::from_sequence` makes a dataset of it.

#include <cstdint>

#include <penstock/sample.h>

namespace penstock {

class Sequence {
 public:
  virtual ~Sequence() = default;
  /// Number of batches in a pass.
  [[nodiscard]] virtual std::uint64_t size() const = 0;
  /// Global batch `index`: tensors with the rows as first dimension, as many as there are. Called
  /// from several threads at once, once for each index of a pass; must depend on the index alone.
  virtual Sample get(std::uint64_t index) = 0;
  /// Called by the thread that consumes, in turns, never while a `get` of the pass is under way. A
  /// run that goes on in epoch n calls them n times first, so that a new object comes to where the
  /// old one was.
  virtual void on_epoch_begin() { plain_begin_ = true; }
  virtual void on_epoch_end() { plain_end_ = true; }

 private:
  friend class SequenceSource;
  bool plain_begin_ = false;  // the hooks are these ones, which do nothing
  bool plain_end_ = false;
};

}  // namespace penstock
