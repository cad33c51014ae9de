// One call of a worker pool: cuts a job into blocks and takes their results.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/cancelled.h"
#include "base/guarded.h"
#include "worker_client.h"
#include "worker_pool.h"

namespace penstock::python {
namespace {

constexpr int kDeathsMax = 3;
constexpr double kBlockNanoseconds = 500e3;  // a block worth its trip

std::size_t divide_up(std::size_t amount, std::size_t by) {
  return (amount + by - 1) / by;
}

}  // namespace

class WorkerCall {
 public:
  WorkerCall(WorkerPool& pool, WorkerJob& job, trace::Activity* activity)
      : pool_(pool), job_(job), activity_(activity), client_(pool, job) {
    const std::size_t block = rows_a_block();
    for (std::size_t first = 0; first < job.rows; first += block)
      client_.submit({first, std::min(block, job.rows - first)});
  }

  Result<void> run() {
    Nanoseconds looked = pool_.options_.clock->now();
    while (!client_.empty()) {
      const std::size_t at = client_.first_row();
      if (const auto id = job_.sample_id(at); id && activity_ != nullptr) activity_->at_sample(*id);
      if ((activity_ != nullptr && activity_->cancelled) || pool_.stopping_) return cancelled(at);
      look_for_interrupts(looked);
      std::vector<WorkerEvent> events = client_.wait();
      for (WorkerEvent& event : events) {
        if (const auto* death = std::get_if<WorkerDeath>(&event)) {
          died(*death);
        } else {
          take(std::get<WorkerAnswer>(std::move(event)));
        }
      }
    }
    if (failure_) return std::move(*failure_);
    return {};
  }

 private:
  [[nodiscard]] std::size_t rows_a_block() const {
    std::size_t rows = job_.rows;
    if (job_.divisible) {
      rows = divide_up(job_.rows, 2ULL * pool_.workers());
      if (const double cost = pool_.row_ns_.load(); cost > 0)
        rows = std::max(rows, static_cast<std::size_t>(kBlockNanoseconds / cost));
    }
    return std::clamp<std::size_t>(rows, 1, std::max<std::size_t>(1, job_.rows));
  }

  /// Where the consumer's own thread works it is the one that must see Ctrl-C.
  void look_for_interrupts(Nanoseconds& looked) {
    constexpr Nanoseconds kPause = std::chrono::milliseconds(50);
    const Nanoseconds now = pool_.options_.clock->now();
    if (getpid() != gettid() || now - looked < kPause) return;
    looked = now;
    pool_.options_.host->check_signals();
  }

  void note(Failure failure) {
    if (failure_ && failure_->row <= failure.row) return;
    failure_ = std::move(failure);
    // Rows behind it are asked for again, if they are wanted; those before it must be computed.
    client_.withdraw_after(failure_->row);
  }

  void take(WorkerAnswer answer) {
    const Message& message = answer.message;
    SharedMemory& results = answer.results.memory();
    results.look_again(message.bytes);
    if (message.noticed != 0 && !pool_.warned_of_global_use_.exchange(true))
      pool_.options_.host->warn_of_global_use(pool_.options_.title);
    measure(message);
    WireReader from(results, message.bytes);
    const WorkerBlock& block = answer.block;
    const std::size_t done = std::min<std::size_t>(message.rows, block.rows);
    auto read = done > 0 ? job_.read(from, block.first, done) : Result<void>();
    if (!read) return note(std::move(read.failure()));
    if (message.word == Word::made) return;
    const std::size_t row = block.first + done;
    auto failed = guarded(
        [&] {
          if (message.word == Word::raised) pool_.options_.host->rethrow(from.text());
          const std::string text = from.text();
          throw ConfigError(text, {}, from.text());
        },
        [&] { return row; });
    failed.failure().row_known = names_row(block);
    note(std::move(failed.failure()));
  }

  void measure(const Message& message) {
    if (message.rows == 0 || message.took_ns == 0 || !job_.divisible) return;
    const double cost = static_cast<double>(message.took_ns) / static_cast<double>(message.rows);
    const double before = pool_.row_ns_.load();
    pool_.row_ns_ = before == 0 ? cost : 0.9 * before + 0.1 * cost;
  }

  /// True when a failure of `block` is that of one row.
  [[nodiscard]] bool names_row(const WorkerBlock& block) const {
    return job_.word == Word::samples || block.rows == 1;
  }

  void died(const WorkerDeath& death) {
    const WorkerBlock& block = death.block;
    const int deaths = block.deaths + (death.by_the_block ? 1 : 0);
    if (deaths < kDeathsMax) return client_.submit({block.first, block.rows, deaths});
    if (death.row > 0 && job_.word == Word::samples) client_.submit({block.first, death.row});
    Failure failure{
        fmt::format("the worker process {}, {} times on this {}", death.how, kDeathsMax,
                    names_row(block) ? "sample" : "block"),
        {},
        "Loader(debug=True) runs the function in this process, where a debugger sees it",
        nullptr,
        block.first + death.row};
    failure.row_known = names_row(block);
    note(std::move(failure));
  }

  WorkerPool& pool_;
  WorkerJob& job_;
  trace::Activity* const activity_;
  WorkerClient client_;
  std::optional<Failure> failure_;
};

Result<void> WorkerPool::run(WorkerJob& job, trace::Activity* activity) {
  if (job.rows == 0) return {};
  if (ended_for_good()) return cancelled(0);
  return WorkerCall(*this, job, activity).run();
}

}  // namespace penstock::python
