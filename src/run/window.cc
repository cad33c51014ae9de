#include "run/window.h"

#include <algorithm>
#include <utility>

#include "penstock/error.h"

namespace penstock {

Window::Window(WindowSettings settings, StepOpener& opener, Clock& clock)
    : settings_(std::move(settings)),
      opener_(opener),
      clock_(clock),
      opened_(settings_.first),
      delivered_(settings_.first),
      pacing_({.threads = settings_.threads}) {
  if (settings_.threads > 0) size_ = pacing_.window();
}

void Window::begin(const Pacing::Limits& limits, std::uint64_t step_rows) {
  Lock lock(mutex_);
  step_bytes_ = limits.step_bytes;
  step_rows_ = step_rows;
  pacing_ = Pacing(limits, settings_.decided);
  size_ = settings_.threads == 0 ? 1 : pacing_.window();
  begun_ = true;
}

void Window::attach(Pool* pool) {
  pool_ = pool;
}

void Window::wake() {
  Lock lock(mutex_);
  if (pool_ != nullptr && !stopped_) pool_->wake();
}

void Window::wake_if_starved() {
  if (pool_ != nullptr && !stopped_ && starved_.exchange(false)) pool_->wake();
}

bool Window::open_step() {
  if (settings_.stream || !begun_) return false;
  const std::uint64_t number = opened_.load(std::memory_order_relaxed);
  if (number >= settings_.end || in_flight() >= size_.load(std::memory_order_relaxed)) return false;
  BudgetLease bytes;
  if (!bytes.take(ByteBudget::process(), step_bytes_, in_flight() == 0)) return false;
  std::unique_ptr<StepInFlight> step = spare();
  step->bytes = std::move(bytes);
  opener_.open(*step, number);
  if (step->ready()) changed_.notify_one();
  steps_.push_back(std::move(step));
  opened_.store(number + 1, std::memory_order_relaxed);
  return true;
}

bool Window::claim(std::vector<Piece>& pieces) {
  if (!begun_) return false;
  if (settings_.threads > 0 && opener_.reads_ahead())
    while (open_step()) {
    }
  // Limits a task so that the other threads still find work.
  const std::uint64_t fair =
      step_rows_ * size_.load(std::memory_order_relaxed) / (2ULL * std::max(1U, settings_.threads));
  const std::uint64_t task_rows =
      settings_.threads == 0 ? UINT64_MAX
                             : std::max<std::uint64_t>(1, std::min(pacing_.task_rows(), fair));
  std::uint64_t budget = task_rows;
  while (budget > 0) {
    if (next_.step == steps_.size() && !open_step()) break;
    StepInFlight& step = *steps_[next_.step];
    const bool asked = step.asked() != nullptr;
    // A requested step is one piece: it has no shares until its batch arrives.
    if (step.ready() || next_.share == (asked ? 1 : step.shares().size())) {
      next_ = {next_.step + 1};
      if (settings_.threads == 0 && !pieces.empty()) break;
      continue;
    }
    if (asked || step.whole()) {
      const std::uint64_t rows = asked ? 1 : step.rows_here();
      pieces.push_back({&step, 0, 0, rows, true});
      budget -= std::min(budget, rows);
      next_.share = asked ? 1 : step.shares().size();
      if (asked) break;  // the duration of the request is unknown
      continue;
    }
    const StepInFlight::Share& share = step.shares()[next_.share];
    if (next_.row == 0) next_.row = share.learned;
    std::uint64_t rows = share.rows - std::min(share.rows, next_.row);
    if (rows > budget) {
      // A share that fits into a task is not split: each piece costs a call.
      if (share.rows <= task_rows && 2 * budget < rows) break;
      if (share.rows > task_rows) rows = budget;
    }
    if (rows > 0) pieces.push_back({&step, next_.share, next_.row, rows, false});
    budget -= std::min(budget, rows);
    next_.row += rows;
    if (next_.row >= share.rows) next_ = {next_.step, next_.share + 1};
  }
  return !pieces.empty();
}

bool Window::may_pull() const {
  return settings_.stream && !ended_ && in_flight() < size_.load(std::memory_order_relaxed) &&
         (in_flight() == 0 || ByteBudget::process().has(step_bytes_));
}

bool Window::choose_task(Task& task) {
  if (stopped_ || broken_) return false;
  if (settings_.wants_help && settings_.wants_help()) {
    task.kind = Task::Kind::help;
  } else if (claim(task.pieces)) {
    const Piece& first = task.pieces.front();
    task.first_step = first.step->number();
    task.steps = task.pieces.back().step->number() - task.first_step + 1;
    task.first_share = settings_.step.shares.first + static_cast<std::uint32_t>(first.share);
    task.first_row = first.first;
    task.leaf = first.step->place().leaf;
    if (const AskedRows* const asked = first.step->asked()) task.asked_index = asked->index;
    return true;
  } else if (!alone_ && may_pull()) {
    task.kind = Task::Kind::pull;
    alone_ = true;
  } else if (!settings_.stream && !begun_ && !alone_) {
    task.kind = Task::Kind::learn;
    alone_ = true;
  } else {
    return false;
  }
  task.first_step = opened_.load(std::memory_order_relaxed);
  return true;
}

bool Window::begin_task(Task& task) {
  Lock lock(mutex_);
  if (!choose_task(task)) {
    // Set the flag before checking again: a delivery in between sees it and wakes this thread.
    starved_.store(true);
    if (!choose_task(task)) return false;
  }
  task.began = clock_.now();
  task.window = pacing_.window();
  tasks_.push_back(&task);
  return true;
}

void Window::end_task(Task& task, std::uint64_t rows) {
  bool notify = false;
  {
    Lock lock(mutex_);
    std::erase(tasks_, &task);
    if (task.alone()) {
      alone_ = false;
      // Pulled steps, and steps that can be opened now, are work for other threads.
      wake_if_starved();
      notify = consumer_waits_;
    } else if (task.kind == Task::Kind::rows) {
      pacing_.read_ahead(opener_.rows_ahead());
      // A stuck thread must not block the window, or the others run out of work: the window does
      // not shrink below its size when that thread took its rows.
      std::uint64_t least = 0;
      for (const Task* other : tasks_)
        least = std::max(least, std::min(2 * other->steps * settings_.threads, other->window));
      pacing_.measured(rows, count_of(clock_.now() - task.began), least);
      if (task.step_bytes > 0) {
        pacing_.measured_bytes(task.step_bytes);
        step_bytes_.store(pacing_.step_bytes(), std::memory_order_relaxed);
      }
      if (settings_.threads > 0) size_.store(pacing_.window(), std::memory_order_relaxed);
      notify = consumer_waits_ && find(Awaited::ready_step) == Found::awaited;
    }
  }
  if (notify) changed_.notify_one();  // without the lock, which it acquires
}

void Window::break_task(Task& task, std::exception_ptr error) {
  Lock lock(mutex_);
  std::erase(tasks_, &task);
  if (task.alone()) alone_ = false;
  if (!broken_) broken_ = std::move(error);
  changed_.notify_all();
}

std::unique_ptr<StepInFlight> Window::spare() {
  if (spare_.empty()) return std::make_unique<StepInFlight>(settings_.step);
  std::unique_ptr<StepInFlight> step = std::move(spare_.back());
  spare_.pop_back();
  return step;
}

std::unique_ptr<StepInFlight> Window::spare_for(Task& task, std::uint64_t number) {
  Lock lock(mutex_);
  task.first_step = number;  // for reports of other threads
  return spare();
}

std::uint64_t Window::publish(std::unique_ptr<StepInFlight> step) {
  if (!step->ready()) {
    step->bytes.take(ByteBudget::process(), step_bytes_, true);
    opener_.open_pulled(*step);
  }
  const std::uint64_t rows = step->rows_here();
  Lock lock(mutex_);
  steps_.push_back(std::move(step));
  opened_.fetch_add(1, std::memory_order_relaxed);
  return rows;
}

void Window::end_stream() {
  Lock lock(mutex_);
  ended_ = true;
}

bool Window::pull_on() {
  Lock lock(mutex_);
  // Sleeping threads may be needed now: the next element may take arbitrarily long.
  if (consumer_waits_) wake_if_starved();
  return !stopped_ && may_pull();
}

Window::Found Window::find(Awaited awaited) const {
  if (steps_.empty()) return ended_ ? Found::end : Found::nothing;
  if (awaited == Awaited::step || steps_.front()->ready()) return Found::awaited;
  return Found::nothing;
}

Window::Found Window::look(Awaited awaited) const {
  Lock lock(mutex_);
  if (stopped_) throw CancelledError("the loader was stopped while waiting for a batch");
  if (broken_) std::rethrow_exception(broken_);
  return find(awaited);
}

bool Window::wait(Awaited awaited, Nanoseconds pause, trace::WaitView& view) {
  Lock lock(mutex_);
  if (stopped_ || broken_ || find(awaited) != Found::nothing) return true;
  // If threads are idle while the consumer waits, the window was too small.
  bool grew = false;
  if (starved_.load() && tasks_.size() < settings_.threads) {
    pacing_.consumer_waited();
    grew = size_.exchange(pacing_.window(), std::memory_order_relaxed) < pacing_.window();
  }
  // A task notifies the consumer at its end, which saves a wake-up per small step. But a complete
  // step must not wait for a slow sample after it, so the consumer also checks by itself.
  if (settings_.stream || grew) wake_if_starved();
  view = {tasks_.size(), alone_, starved_.load() && in_flight() >= size(),
          starved_.load() && (pacing_.at_byte_limit() || !ByteBudget::process().has(step_bytes_))};
  consumer_waits_ = true;
  changed_.wait_for(mutex_, pause);
  consumer_waits_ = false;
  return find(awaited) != Found::nothing;
}

void Window::take_ready(std::deque<std::unique_ptr<StepInFlight>>& ready,
                        std::vector<std::unique_ptr<StepInFlight>>& spent) {
  Lock lock(mutex_);
  for (auto& step : spent) spare_.push_back(std::move(step));
  spent.clear();
  while (!steps_.empty() && steps_.front()->ready()) {
    ready.push_back(std::move(steps_.front()));
    steps_.pop_front();
    if (next_.step > 0) {
      --next_.step;
    } else {
      next_ = {};
    }
  }
}

void Window::count_delivered() {
  const std::uint64_t delivered = delivered_.fetch_add(1) + 1;
  // Wake the pool when there is room for several steps, not for each one.
  if (!starved_.load() || pool_ == nullptr) return;
  const std::uint64_t waiting = opened_.load(std::memory_order_relaxed) - delivered;
  const std::uint64_t size = size_.load(std::memory_order_relaxed);
  if (waiting > 0 && waiting + std::max<std::uint64_t>(1, size / 4) > size) return;
  starved_.store(false);
  pool_->wake();
}

void Window::stop() {
  Lock lock(mutex_);
  stopped_ = true;
  for (Task* task : tasks_) task->activity.cancelled = true;
  changed_.notify_all();
}

}  // namespace penstock
