#include "run/gang.h"

#include <algorithm>
#include <utility>

namespace penstock {

bool PoolGang::work_one(Job& job, const Context& context) {
  const std::size_t first = job.next.fetch_add(job.piece);
  // Once the last piece is claimed there is nothing to help with, however long it takes.
  if (first + job.piece >= job.rows) open_.store(false, std::memory_order_release);
  if (first >= job.rows) return false;
  try {
    (*job.body)(first, std::min(job.piece, job.rows - first), context);
  } catch (...) {
    job.next = job.rows;
    Lock lock(mutex_);
    if (!job.broken) job.broken = std::current_exception();
  }
  return true;
}

void PoolGang::run(std::size_t rows, const Context& context, const Body& body) {
  if (rows == 0) return;
  if (threads_ < 2 || rows < 2) return body(0, rows, context);
  // The cost of one row decides whether sharing the rest pays.
  const Nanoseconds began = clock_.now();
  body(0, 1, context);
  const auto cost = static_cast<std::uint64_t>((clock_.now() - began).count());
  constexpr std::uint64_t kWorthSharing = 200'000;
  constexpr std::uint64_t kPiece = 50'000;
  if (cost * (rows - 1) < kWorthSharing) return body(1, rows - 1, context);

  Job job;
  job.body = &body;
  job.rows = rows;
  job.next = 1;
  job.piece = std::max<std::uint64_t>(1, kPiece / std::max<std::uint64_t>(1, cost));
  {
    Lock lock(mutex_);
    job_ = &job;
  }
  open_.store(true, std::memory_order_release);
  call_help_();
  while (work_one(job, context)) {
  }
  Lock lock(mutex_);
  job_ = nullptr;
  while (job.helpers > 0) done_.wait(mutex_);
  if (job.broken) std::rethrow_exception(job.broken);
}

void PoolGang::help(const Context& context) {
  Job* job = nullptr;
  {
    Lock lock(mutex_);
    if (job_ == nullptr) return;
    job = job_;
    ++job->helpers;
  }
  work_one(*job, context);
  Lock lock(mutex_);
  --job->helpers;
  done_.notify_all();
}

}  // namespace penstock
