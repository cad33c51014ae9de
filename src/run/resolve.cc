// Work that is required before planning: which samples a select, a split or a bucket contains, and
// the lengths of documents to pack.
// tested in src/feed/select_test.cc
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <utility>

#include "base/cancel_scope.h"
#include "base/digest.h"
#include "base/mutex.h"
#include "base/pool.h"
#include "base/report.h"
#include "base/thread_stack.h"
#include "graph/node.h"
#include "op/op.h"
#include "order/split.h"
#include "penstock/clock.h"
#include "plan/program.h"
#include "plan/stages.h"
#include "run/stall.h"
#include "sample/rows.h"
#include "trace/activity.h"
#include "verb/lengths.h"
#include "verb/row_lengths.h"
#include "verb/select.h"

namespace penstock {
namespace {

constexpr std::uint64_t kAtOnce = 1024;  // a multiple of the bits of a word, so that threads share
                                         // no word

/// Receives the rows of samples from number `first` on; different threads receive different ones.
using Visit = std::function<Result<void>(std::uint64_t first, const BlockView& rows)>;

/// Computes all samples, some at a time on each thread of the pool.
class Search final : public Work {
 public:
  Search(std::string word, StagePtr samples, std::uint64_t size, Visit visit)
      : word_(std::move(word)),
        samples_(std::move(samples)),
        size_(size),
        visit_(std::move(visit)) {}

  bool run_one() override {
    const std::uint64_t first = next_.fetch_add(kAtOnce);
    if (first >= size_) return false;
    const std::uint64_t rows = std::min(kAtOnce, size_ - first);
    Looking looking;
    {
      Lock lock(mutex_);
      if (stopped_) return false;
      looking_.push_back(&looking);
    }
    const CancelScope scope(looking.activity.cancelled);
    Result<void> done;
    std::exception_ptr broken;
    try {
      done = look(first, rows, looking.activity);
    } catch (...) {
      broken = std::current_exception();
    }
    Lock lock(mutex_);
    std::erase(looking_, &looking);
    if (!done) {
      done.failure().row += first;
      if (!failure_ || done.failure().row < failure_->row) failure_ = std::move(done.failure());
    }
    if (broken && !broken_) broken_ = broken;
    if (!done || broken) next_ = size_;
    done_ += rows;
    if (is_over()) finished_.notify_all();
    return true;
  }

  /// Waits until all samples are examined. An exception from `while_waiting` ends the search.
  void run(const std::shared_ptr<Search>& self, const std::function<void()>& while_waiting) {
    const auto pool = Pool::shared();
    pool->attach(self, pool->threads(), {.while_waiting = while_waiting});
    try {
      // Inside a function of a loader: all other threads may be blocked in the same way.
      while (Pool::on_own_thread() && run_one()) {
      }
      wait(while_waiting);
    } catch (...) {
      give_up(*pool);
      throw;
    }
    pool->detach(*this);
    Lock lock(mutex_);
    if (broken_) std::rethrow_exception(broken_);
    if (failure_) failure_->raise();
  }

 private:
  struct Looking {  // a thread that examines samples
    trace::Activity activity;
    ThreadId thread = this_thread_id();
  };

  /// Of several failures the one of the first sample is reported, so all active threads must
  /// finish.
  [[nodiscard]] bool is_over() const PENSTOCK_REQUIRES(mutex_) {
    return looking_.empty() && (done_ == size_ || failure_ || broken_);
  }

  void wait(const std::function<void()>& while_waiting) {
    Nanoseconds report_after = std::chrono::seconds(30);
    const Nanoseconds began = Clock::real().now();
    while (true) {
      if (while_waiting) while_waiting();
      if (CancelScope::cancelled()) throw CancelledError(word_ + ": the loader was stopped");
      const Nanoseconds waited = Clock::real().now() - began;
      const bool late = waited >= report_after;
      std::vector<ThreadLine> lines;
      std::uint64_t done = 0;
      {
        Lock lock(mutex_);
        if (is_over()) return;
        if (!late) finished_.wait_for(mutex_, std::chrono::milliseconds(50));
        done = done_;
        for (const Looking* each : looking_)
          lines.push_back({fmt::format("in {}", each->activity.op()), each->thread});
      }
      if (!late) continue;
      report_after = 2 * waited;
      report(fmt::format("{}: looked at {} of {} samples in {:.0f} s{}", word_, done, size_,
                         std::chrono::duration<double>(waited).count(), with_stacks(lines)));
    }
  }

  /// Afterwards no thread works on it, except threads that do not return from a function: those are
  /// abandoned.
  void give_up(Pool& pool) {
    next_ = size_;
    {
      Lock lock(mutex_);
      stopped_ = true;
      for (Looking* each : looking_) each->activity.cancelled = true;
    }
    constexpr auto kPatience = std::chrono::milliseconds(500);
    const unsigned stuck = pool.detach(*this, kPatience);
    if (stuck > 0) report(fmt::format("{}: {}", word_, abandoned_text(stuck)));
  }

  Result<void> look(std::uint64_t first, std::uint64_t rows, trace::Activity& activity) {
    const ScratchStock::Loan loan(scratch_);
    const Context context(loan.scratch(), direct_reader(), &activity);
    const Scratch::Frame frame(context.scratch);
    const ScratchBlock block(samples_->spec(), rows, context.scratch);
    std::uint64_t* const positions = context.scratch.array<std::uint64_t>(rows);
    for (std::uint64_t i = 0; i < rows; ++i) positions[i] = first + i;
    auto done = samples_->produce({{0, 0}, {positions, rows}}, block.view(), context);
    if (done) done = visit_(first, block.view());
    if (!done) done.failure() = at_sample(std::move(done.failure()), samples_->ids(), block.view());
    return done;
  }

  const std::string word_;
  const StagePtr samples_;
  const std::uint64_t size_;
  const Visit visit_;
  ScratchStock scratch_;
  std::atomic<std::uint64_t> next_{0};
  Mutex mutex_;
  Condition finished_;
  std::uint64_t done_ PENSTOCK_GUARDED_BY(mutex_) = 0;
  bool stopped_ PENSTOCK_GUARDED_BY(mutex_) = false;
  std::vector<Looking*> looking_ PENSTOCK_GUARDED_BY(mutex_);
  std::optional<Failure> failure_ PENSTOCK_GUARDED_BY(mutex_);
  std::exception_ptr broken_ PENSTOCK_GUARDED_BY(mutex_);
};

/// A select is computed on its input as a separate dataset, wherever it is used.
std::uint64_t random_ops(const Node& node) {
  std::uint64_t count = 0;
  for (const NodePtr& input : node.inputs) count += random_ops(*input);
  const std::shared_ptr<const Op> op = node.verb->op();
  return count + (op && op->random() ? 1 : 0);
}

std::shared_ptr<const Lengths> count_lengths(const Dataset& input, const LengthRule& rule,
                                             const std::function<void()>& while_waiting) {
  const std::uint64_t size = input.cardinality().count();
  auto lengths = std::make_shared<Lengths>();
  lengths->of.resize(size);
  const auto search = std::make_shared<Search>(
      "lengths",
      measured_stage(compile_samples(*input.node(), {}), rule, random_ops(*input.node())), size,
      [lengths, rule](std::uint64_t first, const BlockView& rows) -> Result<void> {
        const RowLengths found(rows, rule);
        for (std::size_t row = 0; row < rows.rows; ++row) {
          auto length = found[row];
          if (!length) return std::move(length.failure());
          lengths->of[first + row] = *length;
        }
        return {};
      });
  search->run(search, while_waiting);
  Digest digest;
  digest.add({reinterpret_cast<const char*>(lengths->of.data()),
              lengths->of.size() * sizeof(std::uint32_t)});
  lengths->digest = digest.text();
  return lengths;
}

std::shared_ptr<const Chosen> find_bucket(const Dataset& input, const LengthRange& range,
                                          const std::function<void()>& while_waiting) {
  const auto lengths =
      range.lengths->get([&] { return count_lengths(input, range.rule, while_waiting); });
  const std::uint64_t size = lengths->of.size();
  std::vector<std::uint64_t> words((size + 63) / 64, 0);
  for (std::uint64_t i = 0; i < size; ++i) {
    const std::uint64_t length = lengths->of[i];
    if (length >= range.refused)
      throw ConfigError(
          fmt::format("bucket_by_length: sample {} has length {}, the last boundary is {}", i,
                      length, range.refused),
          {}, "add a boundary above it, or cut long samples before");
    if (length >= range.low && length < range.high) words[i / 64] |= 1ULL << (i % 64);
  }
  return std::make_shared<Chosen>(size, std::move(words));
}

std::shared_ptr<const Chosen> find(const Dataset& input, const Selection& selection,
                                   const std::function<void()>& while_waiting) {
  const std::uint64_t size = input.cardinality().count();
  if (selection.range) return find_bucket(input, *selection.range, while_waiting);
  if (!selection.op) return choose_part(size, {selection.fraction, selection.seed, selection.rest});
  StagePtr samples = compile_samples(*input.node(), {});
  const std::string title = fmt::format("select{}", selection.op->describe().substr(3));
  // Each thread writes separate words. Shared: a thread that is abandoned may still write.
  const auto words = std::make_shared<std::vector<std::uint64_t>>((size + 63) / 64, 0);
  const auto search = std::make_shared<Search>(
      "select",
      map_stage(std::move(samples), selection.op, ElementSpec::single(Dtype::boolean),
                {title, selection.seed, random_ops(*input.node())}),
      size, [words](std::uint64_t first, const BlockView& verdict) -> Result<void> {
        const auto* const keep = reinterpret_cast<const std::uint8_t*>(verdict.columns[0].data);
        for (std::uint64_t i = 0; i < verdict.rows; ++i)
          if (keep[i] != 0) (*words)[(first + i) / 64] |= 1ULL << ((first + i) % 64);
        return {};
      });
  search->run(search, while_waiting);
  return std::make_shared<Chosen>(size, std::move(*words));
}

}  // namespace

Dataset Dataset::resolve(const std::function<void()>& while_waiting) const {
  if (!is_unresolved(*node_)) return *this;
  std::vector<Dataset> inputs;
  for (const NodePtr& input : node_->inputs)
    inputs.push_back(Dataset(input).resolve(while_waiting));
  const auto* const needs = dynamic_cast<const NeedsLengths*>(node_->verb.get());
  if (needs != nullptr && node_->facts().unresolved)
    return needs->with_lengths(*node_, inputs.front(), needs->length_cell()->get([&] {
      return count_lengths(inputs.front(), needs->length_rule(), while_waiting);
    }));
  const auto* select = node_->as<Select>();
  if (select == nullptr || select->selection().chosen) return node_->verb->apply(*node_, inputs);
  Selection resolved = select->selection();
  resolved.chosen =
      resolved.cell->get([&] { return find(inputs.front(), resolved, while_waiting); });
  return add_select(inputs.front(), std::move(resolved));
}

}  // namespace penstock
