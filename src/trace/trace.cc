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
constexpr std::size_t kThreadsMax = 4096;  // that have names

/// One writer, any number of readers. Words are atomic, so that a reader that is overtaken reads an
/// old or a new word; the sequence number tells whether they belong together. Each store of a word
/// releases and each load acquires: no word is seen without the 0 that was stored before it.
struct alignas(64) Slot {
  std::atomic<std::uint64_t> sequence{0};
  std::atomic<std::uint64_t> head{0};
  std::atomic<std::uint64_t> step{0};
  std::atomic<std::uint64_t> start{0};
  std::atomic<std::uint64_t> end{0};
  std::atomic<std::uint64_t> sample{0};
  std::atomic<std::uint64_t> tail{0};
};
struct Ring {
  std::array<Slot, kRingEvents> slots;
  std::atomic<std::uint64_t> next{0};  // written by the owning thread; continues where the previous
                                       // owner ended
};

std::atomic<std::uint64_t> next_sequence{1};
std::atomic<std::uint32_t> next_run{1};

/// All rings ever created; rings of ended threads are reused. A fork waits until no thread changes
/// the lists: the child's own thread returns its ring when it ends, like any other.
class Rings {
 public:
  Rings();
  std::shared_ptr<Ring> borrow(std::uint32_t& thread) {
    Lock lock(mutex_);
    thread = static_cast<std::uint32_t>(names_.size());
    std::array<char, 16> name{};
    pthread_getname_np(pthread_self(), name.data(), name.size());
    if (names_.size() < kThreadsMax) names_.emplace_back(name.data());
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
    for (std::size_t i = 0; i < all_.size(); ++i) body(i, *all_[i]);
  }
  [[nodiscard]] std::vector<std::string> names() {
    Lock lock(mutex_);
    return names_;
  }

  void stop_changing() PENSTOCK_ANNOTATE(no_thread_safety_analysis) { mutex_.lock(); }
  void go_on() PENSTOCK_ANNOTATE(no_thread_safety_analysis) { mutex_.unlock(); }

 private:
  Mutex mutex_;
  std::vector<std::shared_ptr<Ring>> all_ PENSTOCK_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Ring>> free_ PENSTOCK_GUARDED_BY(mutex_);
  std::vector<std::string> names_ PENSTOCK_GUARDED_BY(mutex_);
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
  std::uint32_t thread = 0;
  std::shared_ptr<Ring> ring = rings().borrow(thread);
  ~Borrowed() { rings().give_back(std::move(ring)); }
};

struct Found {
  std::uint64_t sequence = 0;
  Event event;
};

/// The event of a slot, or one with sequence 0 if it is being written.
Found read_slot(const Slot& slot) {
  Found found{slot.sequence.load(std::memory_order_acquire), {}};
  const std::uint64_t head = slot.head.load(std::memory_order_acquire);
  const std::uint64_t tail = slot.tail.load(std::memory_order_acquire);
  found.event = {static_cast<Kind>(head >> 56),
                 static_cast<std::uint32_t>(head >> 32) & 0xffffffU,
                 static_cast<std::uint32_t>(head),
                 slot.step.load(std::memory_order_acquire),
                 slot.start.load(std::memory_order_acquire),
                 slot.end.load(std::memory_order_acquire),
                 static_cast<std::uint16_t>(tail >> 32),
                 slot.sample.load(std::memory_order_acquire),
                 static_cast<std::uint32_t>(tail)};
  if (found.sequence != slot.sequence.load(std::memory_order_acquire)) found.sequence = 0;
  return found;
}

std::vector<Event> in_order(std::vector<Found> found) {
  std::ranges::sort(found, {},
                    [](const Found& each) { return std::pair(each.event.end, each.sequence); });
  std::vector<Event> events;
  events.reserve(found.size());
  for (const Found& each : found) events.push_back(each.event);
  return events;
}

}  // namespace

std::uint32_t new_run() {
  return next_run.fetch_add(1);
}

void record(const Event& event) {
  thread_local Borrowed mine;
  Ring& ring = *mine.ring;
  const std::uint64_t at = ring.next.load(std::memory_order_relaxed);
  Slot& slot = ring.slots[at % kRingEvents];
  const std::uint64_t sequence = next_sequence.fetch_add(1, std::memory_order_relaxed);
  slot.sequence.store(0, std::memory_order_relaxed);
  slot.head.store(static_cast<std::uint64_t>(event.kind) << 56 |
                      static_cast<std::uint64_t>(event.run & 0xffffffU) << 32 | event.rows,
                  std::memory_order_release);
  slot.step.store(event.step, std::memory_order_release);
  slot.start.store(event.start, std::memory_order_release);
  slot.end.store(event.end, std::memory_order_release);
  slot.sample.store(event.sample, std::memory_order_release);
  slot.tail.store(static_cast<std::uint64_t>(event.op) << 32 | mine.thread,
                  std::memory_order_release);
  slot.sequence.store(sequence, std::memory_order_release);
  ring.next.store(at + 1, std::memory_order_release);
}

std::vector<Event> events_of(std::uint32_t run) {
  std::vector<Found> found;
  rings().for_each([&](std::size_t, const Ring& ring) {
    for (const Slot& slot : ring.slots) {
      const Found each = read_slot(slot);
      if (each.sequence != 0 && each.event.run == (run & 0xffffffU)) found.push_back(each);
    }
  });
  return in_order(std::move(found));
}

std::vector<Event> EventReader::take() {
  std::vector<Found> found;
  rings().for_each([&](std::size_t index, const Ring& ring) {
    const std::uint64_t end = ring.next.load(std::memory_order_acquire);
    // Events of before the first call belong to other runs, or are few.
    if (index >= taken_.size()) taken_.resize(index + 1, 0);
    std::uint64_t from = taken_[index];
    if (end - from > kRingEvents) {
      if (from > 0) missed_ += end - from - kRingEvents;
      from = end - kRingEvents;
    }
    taken_[index] = end;
    for (; from < end; ++from) {
      const Found each = read_slot(ring.slots[from % kRingEvents]);
      // The owner may have begun to write its next event to this slot.
      if (ring.next.load(std::memory_order_acquire) >= from + kRingEvents) {
        ++missed_;
        continue;
      }
      if (each.sequence != 0 && each.event.run == (run_ & 0xffffffU)) found.push_back(each);
    }
  });
  return in_order(std::move(found));
}

std::vector<std::string> thread_names() {
  return rings().names();
}

}  // namespace penstock::trace
