#include "trace/trace.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <utility>

#include "base/mutex.h"

namespace penstock::trace {
namespace {

constexpr std::size_t kRingEvents = 2048;

/// One writer, any number of readers. Words are atomic, so that a reader that is overtaken reads an
/// old or a new word; the sequence number tells whether they belong together.
struct Slot {
  std::atomic<std::uint64_t> sequence{0};
  std::atomic<std::uint64_t> head{0};
  std::atomic<std::uint64_t> step{0};
  std::atomic<std::uint64_t> start{0};
  std::atomic<std::uint64_t> end{0};
};
struct Ring {
  std::array<Slot, kRingEvents> slots;
  std::size_t next = 0;  // of the owning thread; continues where the previous owner ended
};

std::atomic<std::uint64_t> next_sequence{1};
std::atomic<std::uint32_t> next_run{1};

/// All rings ever created; rings of ended threads are reused. A fork waits until no thread changes
/// the lists: the child's own thread returns its ring when it ends, like any other.
class Rings {
 public:
  Rings();
  std::shared_ptr<Ring> borrow() {
    Lock lock(mutex_);
    if (!free_.empty()) {
      auto ring = std::move(free_.back());
      free_.pop_back();
      return ring;
    }
    all_.push_back(std::make_shared<Ring>());
    return all_.back();
  }
  void give_back(std::shared_ptr<Ring> ring) {
    Lock lock(mutex_);
    free_.push_back(std::move(ring));
  }
  template <typename Body>
  void for_each(Body body) {
    Lock lock(mutex_);
    for (const auto& ring : all_) body(*ring);
  }

  void stop_changing() PENSTOCK_ANNOTATE(no_thread_safety_analysis) { mutex_.lock(); }
  void go_on() PENSTOCK_ANNOTATE(no_thread_safety_analysis) { mutex_.unlock(); }

 private:
  Mutex mutex_;
  std::vector<std::shared_ptr<Ring>> all_ PENSTOCK_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Ring>> free_ PENSTOCK_GUARDED_BY(mutex_);
};

// Created before any thread, since a fork may happen while threads start, and never destroyed:
// threads may end after static objects.
Rings* const made_rings = new Rings;

Rings& rings() {
  return *made_rings;
}

Rings::Rings() {
  pthread_atfork([] { rings().stop_changing(); }, [] { rings().go_on(); }, [] { rings().go_on(); });
}

struct Borrowed {
  std::shared_ptr<Ring> ring = rings().borrow();
  ~Borrowed() { rings().give_back(std::move(ring)); }
};

}  // namespace

std::uint32_t new_run() {
  return next_run.fetch_add(1);
}

void record(const Event& event) {
  thread_local Borrowed mine;
  Slot& slot = mine.ring->slots[mine.ring->next++ % kRingEvents];
  const std::uint64_t sequence = next_sequence.fetch_add(1, std::memory_order_relaxed);
  slot.sequence.store(0, std::memory_order_release);
  slot.head.store(static_cast<std::uint64_t>(event.kind) << 56 |
                      static_cast<std::uint64_t>(event.run & 0xffffffU) << 32 | event.rows,
                  std::memory_order_relaxed);
  slot.step.store(event.step, std::memory_order_relaxed);
  slot.start.store(event.start, std::memory_order_relaxed);
  slot.end.store(event.end, std::memory_order_relaxed);
  slot.sequence.store(sequence, std::memory_order_release);
}

std::vector<Event> events_of(std::uint32_t run) {
  std::vector<std::pair<std::uint64_t, Event>> found;
  rings().for_each([&](const Ring& ring) {
    for (const Slot& slot : ring.slots) {
      const std::uint64_t before = slot.sequence.load(std::memory_order_acquire);
      const std::uint64_t head = slot.head.load(std::memory_order_relaxed);
      const Event event{static_cast<Kind>(head >> 56),
                        static_cast<std::uint32_t>(head >> 32) & 0xffffffU,
                        static_cast<std::uint32_t>(head),
                        slot.step.load(std::memory_order_relaxed),
                        slot.start.load(std::memory_order_relaxed),
                        slot.end.load(std::memory_order_relaxed)};
      const bool whole = before == slot.sequence.load(std::memory_order_acquire);
      if (before != 0 && whole && event.run == (run & 0xffffffU)) found.emplace_back(before, event);
    }
  });
  std::ranges::sort(found, {},
                    [](const auto& entry) { return std::pair(entry.second.end, entry.first); });
  std::vector<Event> events;
  for (const auto& [sequence, event] : found) events.push_back(event);
  return events;
}

}  // namespace penstock::trace
