#pragma once
// Elements chosen once, when a dataset is resolved: by a predicate or, for a split, by a
// permutation of their positions.

#include <cstdint>
#include <functional>
#include <memory>

#include "base/mutex.h"
#include "order/chosen.h"
#include "verb/kinds.h"

namespace penstock {

/// The result of a select, shared by all copies of the dataset. Thread-safe.
class SelectCell {
 public:
  /// Calls `find()` once.
  template <typename Find>
  std::shared_ptr<const Chosen> get(Find find) {
    Lock lock(mutex_);
    if (!chosen_) chosen_ = find();
    return chosen_;
  }

 private:
  Mutex mutex_;
  std::shared_ptr<const Chosen> chosen_ PENSTOCK_GUARDED_BY(mutex_);
};

struct Selection {
  std::shared_ptr<const Op> op = {};  // null: a split
  std::uint64_t seed = 0;
  double fraction = 0;                        // of a split only
  bool rest = false;                          // the second part of the split
  std::shared_ptr<SelectCell> cell = {};      // shared by all copies
  std::shared_ptr<const Chosen> chosen = {};  // once resolved
};

class Select final : public OnSamples {
 public:
  explicit Select(Selection selection) : selection_(std::move(selection)) {}
  [[nodiscard]] const Selection& selection() const { return selection_; }

  [[nodiscard]] Words words() const override;
  [[nodiscard]] Facts facts(const Node&) const override {
    return {.unresolved = selection_.chosen == nullptr};
  }
  [[nodiscard]] Json arguments() const override;
  [[nodiscard]] Dataset apply(const Node& node, const std::vector<Dataset>& inputs) const override;
  [[nodiscard]] StagePtr samples(Compiler& compiler, const Node& node,
                                 std::uint64_t first_id) const override;
  [[nodiscard]] Promise promise(const Node& node, const Delivery& delivery) const override;
  [[nodiscard]] std::shared_ptr<const Op> op() const override { return selection_.op; }

 private:
  const Selection selection_;
};

/// Adds a select or a split. Its number of elements is known if `selection.chosen` is set.
Dataset add_select(const Dataset& input, Selection selection);

}  // namespace penstock
