#include "base/pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/fault.h"

namespace penstock {
namespace {

Mutex shared_mutex;
std::weak_ptr<Pool> shared_pool PENSTOCK_GUARDED_BY(shared_mutex);
unsigned shared_threads PENSTOCK_GUARDED_BY(shared_mutex) = 0;

}  // namespace

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

Pool::Pool(unsigned threads) : threads_count_(std::max(1U, threads)) {
  threads_.reserve(threads_count_);
  for (unsigned i = 0; i < threads_count_; ++i)
    threads_.emplace_back(fmt::format("penstock-{}", i), [this] { serve(); });
}

Pool::~Pool() {
  {
    Lock lock(mutex_);
    stopping_ = true;
    work_or_stop_.notify_all();
  }
  for (Thread& thread : threads_) thread.join();
}

void Pool::attach(std::shared_ptr<Work> work, unsigned threads_max) {
  Lock lock(mutex_);
  members_.push_back(std::make_shared<Member>(Member{std::move(work), threads_max}));
  ++signals_;
  work_or_stop_.notify_all();
}

void Pool::detach(const Work& work) {
  Lock lock(mutex_);
  const auto found = std::ranges::find_if(
      members_, [&](const auto& member) { return member->work.get() == &work; });
  if (found == members_.end()) return;
  const std::shared_ptr<Member> member = *found;
  members_.erase(found);
  member->leaving = true;
  while (member->inside > 0) left_.wait(mutex_);
}

void Pool::wake() {
  Lock lock(mutex_);
  ++signals_;
  if (sleeping_ > 0) work_or_stop_.notify_all();
}

bool Pool::serve_once(std::size_t& turn) {
  std::shared_ptr<Member> member;
  {
    Lock lock(mutex_);
    for (std::size_t i = 0; i < members_.size() && !member; ++i) {
      const auto& candidate = members_[(turn + i) % members_.size()];
      if (candidate->inside >= candidate->threads_max) continue;
      member = candidate;
      turn = (turn + i + 1) % members_.size();
    }
    if (!member) return false;
    ++member->inside;
  }
  PENSTOCK_SCHEDULE();
  const bool did = member->work->run_one();
  Lock lock(mutex_);
  --member->inside;
  if (member->leaving && member->inside == 0) left_.notify_all();
  return did;
}

void Pool::serve() {
  std::size_t turn = 0;
  while (true) {
    std::uint64_t seen = 0;
    std::size_t tries = 0;
    {
      Lock lock(mutex_);
      if (stopping_) return;
      seen = signals_;
      tries = members_.size();
    }
    bool did = false;
    for (std::size_t i = 0; i < tries && !did; ++i) did = serve_once(turn);
    if (did) continue;
    Lock lock(mutex_);
    ++sleeping_;
    while (!stopping_ && signals_ == seen) work_or_stop_.wait(mutex_);
    --sleeping_;
  }
}

}  // namespace penstock
