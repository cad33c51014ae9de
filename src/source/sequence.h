#pragma once
// A user's Sequence as a source: its batches as blocks of rows, its hooks in order, and a check
// that one index returns the same batch twice.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "penstock/block.h"
#include "penstock/dataset.h"
#include "penstock/result.h"
#include "penstock/sequence.h"
#include "source/context.h"

namespace penstock {

/// One batch. The view refers to the tensors of the batch, which are not modified.
struct SequenceBatch {
  Sample answer;
  std::vector<Column> columns;
  std::vector<std::uint64_t> sample_id;
  std::vector<std::uint64_t> occurrence;
  BlockView view;
};

/// Thread-safe.
class SequenceSource {
 public:
  SequenceSource(std::shared_ptr<Sequence> sequence, SequenceOptions options);

  [[nodiscard]] std::uint64_t size() const { return size_; }
  [[nodiscard]] const SequenceOptions& options() const { return options_; }
  /// "from_sequence("train", 7 batches)"
  [[nodiscard]] const std::string& title() const { return title_; }

  /// Ids of the rows of one batch: `first_id + index * kRowsMax + row`.
  static constexpr std::uint64_t kRowsMax = 1ULL << 20;
  struct Asking {
    std::uint64_t index = 0;
    std::uint64_t first_id = 0;
    std::uint64_t epoch = 0;
    std::uint64_t occurrence = 0;
  };
  /// Requests one batch. The first one determines the spec of a row, unless it was declared.
  Result<void> get(const Asking& asking, SequenceBatch& batch, const Context& context);

  /// Calls the hooks that are due before a get of `epoch`.
  void enter_epoch(std::uint64_t epoch);
  /// Called after the last get: requests one index again, and calls the last hook. Returns an error
  /// text if the second batch differs.
  std::optional<std::string> finish();

 private:
  Result<void> take_apart(const Asking& asking, SequenceBatch& batch);

  const std::shared_ptr<Sequence> sequence_;
  const SequenceOptions options_;
  const std::uint64_t size_;
  const std::string title_;

  Mutex mutex_;
  std::shared_ptr<const ElementSpec> row_ PENSTOCK_GUARDED_BY(mutex_);
  std::uint64_t epochs_ended_ PENSTOCK_GUARDED_BY(mutex_) = 0;
  bool begun_ PENSTOCK_GUARDED_BY(mutex_) = false;
  bool told_back_ PENSTOCK_GUARDED_BY(mutex_) = false;
  struct Remembered {
    std::uint64_t epoch = 0;
    std::uint64_t index = 0;
    std::string digest;
  };
  std::optional<Remembered> remembered_ PENSTOCK_GUARDED_BY(mutex_);  // to be requested again
  bool asked_again_ PENSTOCK_GUARDED_BY(mutex_) = false;
};

}  // namespace penstock
