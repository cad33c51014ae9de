#include "base/pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/fault.h"
#include "base/mutex.h"
#include "base/report.h"
#include "penstock/error.h"

namespace penstock {
namespace {

Mutex shared_mutex;
std::weak_ptr<Pool> shared_pool PENSTOCK_GUARDED_BY(shared_mutex);
unsigned shared_threads PENSTOCK_GUARDED_BY(shared_mutex) = 0;

thread_local bool on_pool_thread = false;

struct Member {
  std::shared_ptr<Work> work;
  unsigned threads_max = 1;
  std::vector<unsigned> inside;  // slots of the threads in `run_one`
  bool leaving = false;
  bool abandoned = false;
};

}  // namespace

/// State shared by the threads and the pool; lives as long as the last of them.
class Pool::Shared {
 public:
  Mutex mutex;
  Condition work_or_stop;
  Condition left;
  std::vector<std::shared_ptr<Member>> members PENSTOCK_GUARDED_BY(mutex);
  std::vector<std::unique_ptr<Thread>> threads PENSTOCK_GUARDED_BY(mutex);  // by slot
  std::uint64_t signals PENSTOCK_GUARDED_BY(mutex) = 0;
  unsigned sleeping PENSTOCK_GUARDED_BY(mutex) = 0;
  bool stopping PENSTOCK_GUARDED_BY(mutex) = false;

  enum class Served : std::uint8_t { work, nothing, abandoned };
  Served serve_once(unsigned slot, std::size_t& turn);
};

std::shared_ptr<Pool> Pool::shared() {
  Lock lock(shared_mutex);
  std::shared_ptr<Pool> pool = shared_pool.lock();
  if (!pool) {
    pool = std::make_shared<Pool>(shared_threads == 0 ? usable_cores() : shared_threads);
    shared_pool = pool;
  }
  return pool;
}

void Pool::set_shared_threads(unsigned threads) {
  Lock lock(shared_mutex);
  shared_threads = threads;
}

unsigned Pool::abandoned() {
  return abandoned_threads().load();
}

bool Pool::on_own_thread() {
  return on_pool_thread;
}

std::size_t Pool::works() const {
  Lock lock(shared_->mutex);
  return shared_->members.size();
}

Pool::Pool(unsigned threads)
    : threads_count_(std::max(1U, threads)), shared_(std::make_shared<Shared>()) {
  try {
    start_missing_threads();
  } catch (...) {
    stop_threads();  // nothing else would end those that have started
    throw;
  }
}

void Pool::start_missing_threads() {
  // Under the lock, so that a caller that abandons a thread finds it in its slot.
  Lock lock(shared_->mutex);
  shared_->threads.resize(threads_count_);
  for (unsigned slot = 0; slot < threads_count_; ++slot) {
    std::unique_ptr<Thread>& thread = shared_->threads[slot];
    if (thread) continue;
    try {
      if (PENSTOCK_FAULT("pool.thread"))
        throw std::system_error(EAGAIN, std::generic_category(), "thread");
      thread = std::make_unique<Thread>(fmt::format("penstock-{}", slot),
                                        [shared = shared_, slot] { serve(shared, slot); });
    } catch (const std::exception& error) {
      throw ResourceError(fmt::format("pool: thread {} of {} could not be started: {}", slot + 1,
                                      threads_count_, error.what()),
                          {}, "allow more threads (ulimit -u, or pids.max of the container)");
    }
  }
}

Pool::~Pool() {
  stop_threads();
}

void Pool::stop_threads() {
  std::vector<std::unique_ptr<Thread>> threads;
  {
    Lock lock(shared_->mutex);
    shared_->stopping = true;
    shared_->work_or_stop.notify_all();
    threads.swap(shared_->threads);
  }
  for (const auto& thread : threads)
    if (thread) thread->join();
}

void Pool::wait_for_abandoned(const Patience& patience) const {
  constexpr std::chrono::nanoseconds kLookAgain = std::chrono::milliseconds(20);
  constexpr std::chrono::nanoseconds kReportAfter = std::chrono::seconds(1);
  const auto began = std::chrono::steady_clock::now();
  bool reported = false;
  while (abandoned() >= abandoned_max()) {
    if (patience.while_waiting) patience.while_waiting();
    const auto waited = std::chrono::steady_clock::now() - began;
    if (waited >= patience.wait_max)
      throw ResourceError(
          fmt::format("{} threads of this process are stuck in functions that do not return",
                      abandoned()),
          {}, "give those functions a time limit; no new work starts until they return");
    if (waited >= kReportAfter && !std::exchange(reported, true))
      report(
          fmt::format("{} threads of earlier loops are still inside a function or a read; new "
                      "work waits up to {:.0f} s for them to return",
                      abandoned(), std::chrono::duration<double>(patience.wait_max).count()));
    sleep_thread(std::min(kLookAgain, patience.wait_max));
  }
}

void Pool::attach(std::shared_ptr<Work> work, unsigned threads_max, const Patience& patience) {
  wait_for_abandoned(patience);
  start_missing_threads();
  auto member = std::make_shared<Member>();
  member->work = std::move(work);
  member->threads_max = threads_max;
  Lock lock(shared_->mutex);
  shared_->members.push_back(std::move(member));
  ++shared_->signals;
  shared_->work_or_stop.notify_all();
}

unsigned Pool::detach(const Work& work, std::chrono::nanoseconds patience) {
  std::vector<unsigned> stuck;
  {
    Lock lock(shared_->mutex);
    auto& members = shared_->members;
    const auto found = std::ranges::find_if(
        members, [&](const auto& member) { return member->work.get() == &work; });
    if (found == members.end()) return 0;
    // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): it leaves the list, not us
    const std::shared_ptr<Member> member = *found;
    members.erase(found);
    // The entries after it have moved: a thread that searches for work may have missed one.
    ++shared_->signals;
    shared_->work_or_stop.notify_all();
    member->leaving = true;
    const auto until = std::chrono::steady_clock::now() + patience;
    while (!member->inside.empty()) {
      const auto left = until - std::chrono::steady_clock::now();
      if (left.count() <= 0) break;
      shared_->left.wait_for(shared_->mutex, left);
    }
    stuck = member->inside;
    if (stuck.empty()) member->work.reset();  // threads about to leave still reference the member
    member->abandoned = !stuck.empty();
    for (const unsigned slot : stuck) {
      shared_->threads[slot]->detach();
      shared_->threads[slot].reset();
    }
    abandoned_threads() += static_cast<unsigned>(stuck.size());
  }
  try {
    start_missing_threads();
  } catch (const std::exception& error) {  // not the caller's concern: the next caller retries
    report(fmt::format("a thread that was abandoned could not be replaced: {}", error.what()));
  }
  return static_cast<unsigned>(stuck.size());
}

void Pool::wake() {
  Lock lock(shared_->mutex);
  ++shared_->signals;
  if (shared_->sleeping > 0) shared_->work_or_stop.notify_all();
}

Pool::Shared::Served Pool::Shared::serve_once(unsigned slot, std::size_t& turn) {
  std::shared_ptr<Member> member;
  {
    Lock lock(mutex);
    for (std::size_t i = 0; i < members.size() && !member; ++i) {
      const auto& candidate = members[(turn + i) % members.size()];
      if (candidate->inside.size() >= candidate->threads_max) continue;
      member = candidate;
      turn = (turn + i + 1) % members.size();
    }
    if (!member) return Served::nothing;
    member->inside.push_back(slot);
  }
  PENSTOCK_SCHEDULE();
  const bool did = member->work->run_one();
  Lock lock(mutex);
  if (member->abandoned) return Served::abandoned;
  std::erase(member->inside, slot);
  if (member->leaving && member->inside.empty()) left.notify_all();
  return did ? Served::work : Served::nothing;
}

void Pool::serve(const std::shared_ptr<Shared>& shared, unsigned slot) {
  on_pool_thread = true;
  std::size_t turn = 0;
  while (true) {
    std::uint64_t seen = 0;
    std::size_t tries = 0;
    {
      Lock lock(shared->mutex);
      if (shared->stopping) return;
      seen = shared->signals;
      tries = shared->members.size();
    }
    auto served = Shared::Served::nothing;
    for (std::size_t i = 0; i < tries && served == Shared::Served::nothing; ++i)
      served = shared->serve_once(slot, turn);
    if (served == Shared::Served::abandoned) {
      --abandoned_threads();  // this slot belongs to another thread
      return;
    }
    if (served == Shared::Served::work) continue;
    Lock lock(shared->mutex);
    ++shared->sleeping;
    while (!shared->stopping && shared->signals == seen) shared->work_or_stop.wait(shared->mutex);
    --shared->sleeping;
  }
}

}  // namespace penstock
