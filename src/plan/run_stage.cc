// tested in src/plan/flows_test.cc
#include "plan/run_stage.h"

#include <algorithm>
#include <optional>

#include "base/mutex.h"
#include "sample/rows.h"

namespace penstock {
namespace {

/// Holds the failure of the first row, whichever thread reports first.
class FirstFailure {
 public:
  void add(Failure failure) {
    Lock lock(mutex_);
    if (!failure_ || failure.row < failure_->row) failure_ = std::move(failure);
  }
  [[nodiscard]] std::optional<Failure> take() {
    Lock lock(mutex_);
    return std::exchange(failure_, std::nullopt);
  }

 private:
  Mutex mutex_;
  std::optional<Failure> failure_ PENSTOCK_GUARDED_BY(mutex_);
};

}  // namespace

Result<std::size_t> run_stage(const Stage& stage, const StageRows& which, const BlockView& out,
                              Pulling& pulling, std::uint8_t* failed) {
  const Scratch::Frame frame(pulling.context.scratch);
  BlockView rows = out;
  std::uint8_t* flags = failed;
  if (flags == nullptr) {
    flags = pulling.context.scratch.array<std::uint8_t>(out.rows);
    std::fill_n(flags, out.rows, std::uint8_t{0});
  }
  rows.identity.failed = flags;
  rows.identity.failures = pulling.failures;
  FirstFailure first_failure;
  const Gang::Body body = [&](std::size_t first, std::size_t count, const Context& context) {
    const Scratch::Frame part_frame(context.scratch);
    std::uint64_t* const positions = context.scratch.array<std::uint64_t>(count);
    for (std::size_t i = 0; i < count; ++i) positions[i] = which.first + first + i;
    auto done = stage.produce({which.turn, {positions, count}, which.pulled},
                              cut_rows(rows, first, count, context.scratch), context);
    if (done) return;
    done.failure().row += first;
    first_failure.add(std::move(done.failure()));
  };
  if (pulling.gang != nullptr) {
    pulling.gang->run(out.rows, pulling.context, body);
  } else {
    body(0, out.rows, pulling.context);
  }
  if (auto failure = first_failure.take()) return std::move(*failure);
  if (failed != nullptr || std::none_of(flags, flags + out.rows, [](auto f) { return f != 0; }))
    return out.rows;
  for (std::size_t row = 0; row < out.rows; ++row) flags[row] = flags[row] == 0 ? 1 : 0;
  return keep_rows(out, {flags, out.rows});
}

}  // namespace penstock
