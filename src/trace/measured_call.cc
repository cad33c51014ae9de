// tested in src/trace/recorder_test.cc
#include "trace/measured_call.h"

#include <algorithm>
#include <atomic>

#include "base/thread_times.h"
#include "trace/recorder.h"

namespace penstock::trace {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

}  // namespace

MeasuredCall::MeasuredCall(const Recorded& work, const std::string& title, std::uint64_t sample,
                           std::uint64_t rows)
    : work_(work), sample_(sample), rows_(rows) {
  if (work_.recorder == nullptr || rows == 0) return;
  totals_ = &work_.recorder->op(title);
  totals_->calls.fetch_add(1, kRelaxed);
  totals_->rows.fetch_add(rows, kRelaxed);
  if (totals_->unmeasured.load(kRelaxed) > 0) {
    totals_->unmeasured.fetch_sub(1, kRelaxed);
    return;
  }
  constexpr std::uint32_t kWorthMeasuringCpu = 20'000;  // nanoseconds: a hundred times its cost
  measured_ = true;
  before_ = blocked_here();
  with_cpu_ = work_.recorder->real_time() && totals_->last.load(kRelaxed) > kWorthMeasuringCpu;
  began_ = work_.recorder->clock().now();
  if (with_cpu_) cpu_before_ = cpu_time_here();
}

void MeasuredCall::made(std::uint64_t bytes) const {
  if (totals_ != nullptr) totals_->bytes.fetch_add(bytes, kRelaxed);
}

MeasuredCall::~MeasuredCall() {
  if (totals_ == nullptr) {
    retries_here().clear();
    return;
  }
  for (const std::string& failure : retries_here())
    work_.recorder->retried(totals_->title + ": " + failure);
  retries_here().clear();
  if (measured_) end();
}

void MeasuredCall::end() {
  const std::uint64_t cpu = with_cpu_ ? cpu_time_here() - cpu_before_ : 0;
  const std::uint64_t took = count_between(began_, work_.recorder->clock().now());
  const Blocked& after = blocked_here();
  const auto add = [](std::atomic<std::uint64_t>& total, std::uint64_t amount) {
    if (amount > 0) total.fetch_add(amount, kRelaxed);
  };
  add(totals_->measured_rows, rows_);
  add(totals_->nanoseconds, took);
  add(totals_->lock, after.lock - before_.lock);
  add(totals_->process, after.process - before_.process);
  add(totals_->read, after.read - before_.read);
  add(totals_->read_bytes, after.read_bytes - before_.read_bytes);
  add(totals_->retry, after.retry - before_.retry);
  if (with_cpu_) {
    add(totals_->cpu, cpu);
    add(totals_->cpu_of, took);
  }
  constexpr std::uint64_t kShort = 4'000;  // nanoseconds
  constexpr std::int32_t kPassOver = 15;
  totals_->last.store(static_cast<std::uint32_t>(std::min<std::uint64_t>(took, UINT32_MAX)),
                      kRelaxed);
  totals_->durations.add(took / rows_, rows_);
  if (took < kShort) totals_->unmeasured.store(kPassOver, kRelaxed);
  const std::uint64_t began = count_between(Nanoseconds(0), began_);
  work_.recorder->op_called(*totals_, {.rows = static_cast<std::uint32_t>(rows_),
                                       .step = work_.step,
                                       .start = began,
                                       .end = began + took,
                                       .sample = sample_});
}

}  // namespace penstock::trace
