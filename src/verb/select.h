#pragma once
// Elements chosen once, when a dataset is resolved: by a predicate, for a split by a permutation of
// their positions, or for a bucket by their length.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "order/chosen.h"
#include "verb/kinds.h"
#include "verb/lengths.h"

namespace penstock {

/// The result of a select, shared by all copies of the dataset.
using SelectCell = SharedOnce<Chosen>;

/// Lengths from `low` to below `high`.
struct LengthRange {
  LengthRule rule;
  std::uint64_t low = 0;
  std::uint64_t high = UINT64_MAX;
  std::uint64_t refused = UINT64_MAX;        // lengths from this on are an error
  std::shared_ptr<LengthCell> lengths = {};  // shared by all buckets of a dataset
};

struct Selection {
  std::shared_ptr<const Op> op = {};              // null: a split, or a bucket
  std::shared_ptr<const LengthRange> range = {};  // of a bucket only
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
