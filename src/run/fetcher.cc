#include "run/fetcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <deque>
#include <new>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "base/cancelled.h"
#include "base/fault.h"
#include "base/guarded.h"
#include "base/mix.h"
#include "base/printable.h"
#include "base/thread.h"
#include "trace/blocked.h"
#include "trace/phases.h"

namespace penstock {
namespace {

constexpr double kSlow = 100e3;  // nanoseconds; above this, fetcher threads are worth it
constexpr double kFast = 50e3;   // below this, they no longer are
constexpr double kWorthOneThread = 50e3;

/// Files of unknown size count as 0 bytes: they are missing, or not regular files. So do files
/// above their size limit, which are not read.
std::uint64_t bytes_of(const Read& read) {
  const bool read_at_all = !read.whole || read.length <= read.bytes_max;
  return read.length == UINT64_MAX || !read_at_all ? 0 : read.length;
}

/// Fetcher threads have no caller to catch exceptions.
Result<Bytes> guarded_read(Io& io, const Read& read) {
  try {
    return read_now(io, read);
  } catch (const std::bad_alloc&) {
    Failure failure = no_memory(0);
    failure.message = fmt::format("{}: {}", printable(read.object), failure.message);
    return failure;
  } catch (const std::exception& error) {
    return Failure{fmt::format("{}: {}", printable(read.object), error.what())};
  }
}

struct KeyHash {
  std::size_t operator()(const ReadKey& key) const {
    return combine(reinterpret_cast<std::uintptr_t>(key.source), key.number);
  }
};

}  // namespace

void ReadPace::measured(Nanoseconds took, std::uint64_t bytes) {
  // Copying takes about a nanosecond per byte. A thread that was not scheduled for a while must not
  // look like a slow disk, so a single read changes the average by a bounded step.
  const double beyond =
      std::max(0.0, static_cast<double>(took.count()) - static_cast<double>(bytes));
  Lock lock(mutex_);
  latency_ = 0.9 * latency_ + 0.1 * std::min(beyond, 2 * (latency_ + kFast));
  unsigned threads = threads_.load(std::memory_order_relaxed);
  if (latency_ < (threads > 0 ? kFast : kSlow)) {
    threads = 0;
  } else {
    threads = static_cast<unsigned>(
        std::clamp<double>(std::ceil(latency_ / kWorthOneThread), 2, kThreadsMax));
  }
  threads_.store(threads, std::memory_order_relaxed);
}

double ReadPace::latency() const {
  Lock lock(mutex_);
  return latency_;
}

/// One queued read.
struct Fetcher::Ticket {
  enum class State : std::uint8_t { queued, flying, done };
  std::uint64_t step = 0;
  ReadKey key;
  Read read;
  State state = State::queued;
  bool wanted = true;    // false: taken by a worker before it started, or forgotten
  bool awaited = false;  // a worker waits for it
  Result<Bytes> result = Bytes();
};

struct Fetcher::Slot {
  std::unique_ptr<Thread> thread;
  std::string reading;  // the file, during a read
  bool finished = false;
  bool abandoned = false;
};

/// State shared by the threads and the fetcher; lives as long as the last of them.
class Fetcher::Shared {
 public:
  explicit Shared(Options wanted) : options(std::move(wanted)) {}
  using TicketPtr = std::shared_ptr<Ticket>;
  using Tickets = std::unordered_multimap<ReadKey, TicketPtr, KeyHash>;

  const Options options;
  Mutex mutex;
  Condition work;
  Condition done;
  Condition left;
  Tickets tickets PENSTOCK_GUARDED_BY(mutex);
  std::unordered_map<std::uint64_t, std::vector<TicketPtr>> steps PENSTOCK_GUARDED_BY(mutex);
  std::deque<TicketPtr> waiting PENSTOCK_GUARDED_BY(mutex);
  std::vector<std::shared_ptr<Slot>> slots PENSTOCK_GUARDED_BY(mutex);
  unsigned running PENSTOCK_GUARDED_BY(mutex) = 0;
  std::uint64_t held PENSTOCK_GUARDED_BY(mutex) = 0;
  bool stopping PENSTOCK_GUARDED_BY(mutex) = false;

  /// The read for one row; one that is already complete if a row is used several times.
  TicketPtr find(const Read& read, const ReadKey& key) PENSTOCK_REQUIRES(mutex) {
    TicketPtr found;
    const auto [first, last] = tickets.equal_range(key);
    for (auto it = first; it != last; ++it) {
      const TicketPtr& ticket = it->second;
      if (ticket->awaited || ticket->read.object != read.object ||
          ticket->read.offset != read.offset || ticket->read.length != read.length)
        continue;
      if (!found || ticket->state > found->state) found = ticket;
    }
    return found;
  }

  /// Removes a ticket that no worker will request.
  void drop(const TicketPtr& ticket) PENSTOCK_REQUIRES(mutex) {
    const auto [first, last] = tickets.equal_range(ticket->key);
    const auto found =
        std::find_if(first, last, [&](const auto& each) { return each.second == ticket; });
    if (found == last) return;
    tickets.erase(found);
    ticket->wanted = false;
    held -= bytes_of(ticket->read);
    options.budget->give_back(bytes_of(ticket->read));
  }

  /// Returns the next read for a thread, or null if the thread should end.
  TicketPtr next() {
    Lock lock(mutex);
    while (true) {
      while (!waiting.empty() && !waiting.front()->wanted) waiting.pop_front();
      if (stopping || running > options.pace->threads()) return nullptr;
      if (!waiting.empty()) break;
      work.wait(mutex);
    }
    TicketPtr ticket = std::move(waiting.front());
    waiting.pop_front();
    ticket->state = Ticket::State::flying;
    return ticket;
  }
};

Fetcher::Fetcher(Options options)
    : options_(options), shared_(std::make_shared<Shared>(std::move(options))) {}

Fetcher::~Fetcher() {
  stop(std::chrono::milliseconds(500));
}

void Fetcher::serve(const std::shared_ptr<Shared>& shared, const std::shared_ptr<Slot>& slot) {
  const Options& options = shared->options;
  while (const Shared::TicketPtr ticket = shared->next()) {
    {
      Lock lock(shared->mutex);
      slot->reading = ticket->read.object;
    }
    const Nanoseconds began = options.clock->now();
    PENSTOCK_SCHEDULE();
    Result<Bytes> result = guarded_read(*options.io, ticket->read);
    Lock lock(shared->mutex);
    if (slot->abandoned) break;  // this thread may only use `shared` from here on
    const Nanoseconds ended = options.clock->now();
    const std::uint64_t bytes = result ? (*result).size() : 0;
    options.pace->measured(ended - began, bytes);
    if (options.recorder) {
      options.recorder->read(began, ended, bytes, true);
      options.recorder->reads_ahead(shared->running, options.pace->latency() * 1e-9);
    }
    slot->reading.clear();
    ticket->state = Ticket::State::done;
    if (ticket->wanted) ticket->result = std::move(result);
    shared->done.notify_all();
    if (shared->running > options.pace->threads()) shared->work.notify_all();
  }
  Lock lock(shared->mutex);
  if (slot->abandoned) {
    --abandoned_threads();
    return;
  }
  slot->finished = true;
  --shared->running;
  shared->left.notify_all();
}

void Fetcher::queue(std::uint64_t step, std::vector<PlannedRead> reads) {
  if (reads.empty()) return;
  std::uint64_t bytes = 0;
  for (const PlannedRead& planned : reads) bytes += bytes_of(planned.read);
  Lock lock(shared_->mutex);
  if (shared_->stopping || shared_->held + bytes > options_.bytes_max) return;
  if (!options_.budget->take(bytes, false)) return;
  queued_.store(true, std::memory_order_relaxed);
  shared_->held += bytes;
  auto& of_step = shared_->steps[step];
  for (PlannedRead& planned : reads) {
    auto ticket = std::make_shared<Ticket>();
    ticket->step = step;
    ticket->key = planned.key;
    ticket->read = std::move(planned.read);
    shared_->tickets.emplace(ticket->key, ticket);
    shared_->waiting.push_back(ticket);
    of_step.push_back(std::move(ticket));
  }
  const unsigned wanted = static_cast<unsigned>(
      std::min<std::uint64_t>(options_.pace->threads(), shared_->waiting.size()));
  bool can_start = true;
  while (shared_->running < wanted && can_start) {
    std::erase_if(shared_->slots, [](const auto& slot) {
      if (slot->finished) slot->thread->join();  // the thread has already left its loop
      return slot->finished;
    });
    auto slot = std::make_shared<Slot>();
    try {
      if (PENSTOCK_FAULT("fetcher.thread"))
        throw std::system_error(EAGAIN, std::generic_category(), "thread");
      slot->thread = std::make_unique<Thread>(fmt::format("penstock-io-{}", shared_->slots.size()),
                                              [shared = shared_, slot] { serve(shared, slot); });
    } catch (const std::exception&) {
      can_start = false;  // continue with fewer threads, or let the workers read
      continue;
    }
    shared_->slots.push_back(std::move(slot));
    ++shared_->running;
  }
  shared_->work.notify_all();
}

void Fetcher::forget(std::uint64_t step) {
  Lock lock(shared_->mutex);
  const auto found = shared_->steps.find(step);
  if (found == shared_->steps.end()) return;
  for (const Shared::TicketPtr& ticket : found->second) shared_->drop(ticket);
  shared_->steps.erase(found);
}

void Fetcher::note_read(Nanoseconds began, Nanoseconds ended, std::uint64_t bytes) const {
  trace::Blocked& blocked = trace::blocked_here();
  blocked.read += trace::count_between(began, ended);
  blocked.read_bytes += bytes;
  if (options_.recorder) options_.recorder->read(began, ended, bytes, false);
}

Result<Bytes> Fetcher::read_here(const Read& read) {
  const Nanoseconds began = options_.clock->now();
  auto bytes = read_now(*options_.io, read);
  const Nanoseconds ended = options_.clock->now();
  const std::uint64_t count = bytes ? (*bytes).size() : 0;
  options_.pace->measured(ended - began, count);
  note_read(began, ended, count);
  return bytes;
}

Result<Bytes> Fetcher::get(const Read& read, const ReadKey& key) {
  {
    Lock lock(shared_->mutex);
    if (shared_->stopping) return cancelled(0);
    if (const auto ticket = shared_->find(read, key)) {
      if (ticket->state == Ticket::State::queued) {
        shared_->drop(ticket);
      } else {
        ticket->awaited = true;
        const Nanoseconds began = options_.clock->now();
        while (ticket->state != Ticket::State::done && !shared_->stopping)
          shared_->done.wait(shared_->mutex);
        trace::blocked_here().read += trace::count_between(began, options_.clock->now());
        if (ticket->state != Ticket::State::done) return cancelled(0);
        Result<Bytes> result = std::move(ticket->result);
        shared_->drop(ticket);
        return result;
      }
    }
  }
  return read_here(read);
}

Result<void> Fetcher::read_at(const FileHandle& file, std::uint64_t offset,
                              std::span<std::byte> out, const ReadKey& key) {
  if (by_row()) {
    // A shared_ptr without a count: the caller keeps the handle during the call.
    Read read{.object = file.path(), .offset = offset, .length = out.size()};
    read.file = std::shared_ptr<const FileHandle>(std::shared_ptr<void>(), &file);
    const auto bytes = get(read, key);
    if (!bytes) return bytes.failure();
    std::ranges::copy(*bytes, out.begin());
    return {};
  }
  const Nanoseconds began = options_.clock->now();
  auto done = options_.io->read_at(file, offset, out);
  const Nanoseconds took = options_.clock->now() - began;
  trace::add_phase(trace::Phase::read, took);
  note_read(began, began + took, done ? out.size() : 0);
  // Small reads from memory are too many to count each one.
  constexpr Nanoseconds kUnusual{20'000};
  constexpr std::uint32_t kEvery = 64;
  if (took > kUnusual || direct_reads_.fetch_add(1, std::memory_order_relaxed) % kEvery == 0)
    options_.pace->measured(took, done ? out.size() : 0);
  return done;
}

Result<Bytes> Fetcher::get_file(const std::string& path, std::uint64_t bytes_max) {
  return read_here({path, 0, UINT64_MAX, true, bytes_max, {}, {}});
}

void Fetcher::cancel() {
  Lock lock(shared_->mutex);
  shared_->stopping = true;
  shared_->work.notify_all();
  shared_->done.notify_all();
}

std::vector<std::string> Fetcher::stop(std::chrono::nanoseconds patience) {
  cancel();
  std::vector<std::string> stuck;
  std::vector<std::shared_ptr<Slot>> slots;
  {
    Lock lock(shared_->mutex);
    const auto until = std::chrono::steady_clock::now() + patience;
    // Threads outside a read end as soon as they are scheduled.
    const auto about_to_end = [](const std::shared_ptr<Slot>& slot) {
      return !slot->finished && slot->reading.empty();
    };
    while (shared_->running > 0) {
      const auto rest = until - std::chrono::steady_clock::now();
      if (rest.count() <= 0 && std::ranges::none_of(shared_->slots, about_to_end)) break;
      constexpr std::chrono::nanoseconds kLookAgain = std::chrono::milliseconds(20);
      shared_->left.wait_for(shared_->mutex, std::max<std::chrono::nanoseconds>(rest, kLookAgain));
    }
    slots.swap(shared_->slots);
    for (const auto& slot : slots) {
      if (slot->finished) continue;
      slot->abandoned = true;
      slot->thread->detach();
      stuck.push_back(slot->reading);
      ++abandoned_threads();
      --shared_->running;
    }
    for (const auto& [step, tickets] : shared_->steps)
      for (const Shared::TicketPtr& ticket : tickets) shared_->drop(ticket);
    shared_->steps.clear();
    shared_->waiting.clear();
  }
  for (const auto& slot : slots)
    if (!slot->abandoned) slot->thread->join();
  return stuck;
}

unsigned Fetcher::threads() const {
  Lock lock(shared_->mutex);
  return shared_->running;
}

std::uint64_t Fetcher::bytes_held() const {
  Lock lock(shared_->mutex);
  return shared_->held;
}

}  // namespace penstock
