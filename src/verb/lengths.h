#pragma once
// The length of each sample of a dataset, counted once when it is resolved: for bucket_by_length
// and pack.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "penstock/dataset.h"

namespace penstock {

class Node;
class Op;

/// What the length of a sample is: the first size of a field, or what a function returns.
struct LengthRule {
  std::string field = {};
  std::shared_ptr<const Op> measure = {};  // returns i64; null: the field counts
};

/// A value that is computed once and shared by all copies of a dataset. Thread-safe.
template <typename Value>
class SharedOnce {
 public:
  /// Calls `find()` once.
  template <typename Find>
  std::shared_ptr<const Value> get(Find find) {
    Lock lock(mutex_);
    if (!value_) value_ = find();
    return value_;
  }

 private:
  Mutex mutex_;
  std::shared_ptr<const Value> value_ PENSTOCK_GUARDED_BY(mutex_);
};

/// Throws ConfigError if the rule has a function, which cannot be written as text.
void refuse_measure(const LengthRule& rule);

struct Lengths {
  std::vector<std::uint32_t> of;
  std::string digest;
};
using LengthCell = SharedOnce<Lengths>;

/// A verb that needs the lengths of its input.
class NeedsLengths {
 public:
  virtual ~NeedsLengths() = default;
  [[nodiscard]] virtual LengthRule length_rule() const = 0;
  [[nodiscard]] virtual const std::shared_ptr<LengthCell>& length_cell() const = 0;
  /// The same verb on `input`, with its lengths.
  [[nodiscard]] virtual Dataset with_lengths(const Node& node, const Dataset& input,
                                             std::shared_ptr<const Lengths> lengths) const = 0;
};

}  // namespace penstock
