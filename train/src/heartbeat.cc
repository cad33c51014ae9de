#include "heartbeat.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace penstock::train {
namespace {

double seconds(std::chrono::nanoseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

Verdict verdict_on(const std::vector<RankSeen>& seen, std::uint32_t own,
                   std::chrono::nanoseconds now, std::chrono::nanoseconds heard_store) {
  if (now - heard_store > Heartbeat::kSilence)
    return {true,
            fmt::format("this rank, {} of {}, has no connection: the store has not answered for "
                        "{:.0f} s, so its host or the network is down",
                        own, seen.size(), seconds(now - heard_store))};
  std::vector<std::string> lost;
  std::vector<std::string> well;
  for (std::uint32_t rank = 0; rank < seen.size(); ++rank) {
    if (rank == own) continue;
    if (seen[rank].left) {
      lost.push_back(
          fmt::format("rank {} of {} has left; its own output says why", rank, seen.size()));
    } else if (now - seen[rank].last > Heartbeat::kSilence) {
      lost.push_back(
          fmt::format("rank {} of {} has sent no heartbeat for {:.0f} s: it died or "
                      "lost its connection",
                      rank, seen.size(), seconds(now - seen[rank].last)));
    } else {
      well.push_back(fmt::format("rank {} is in {}", rank, seen[rank].doing));
    }
  }
  if (!lost.empty()) return {true, fmt::format("{}", fmt::join(lost, "; "))};
  return {false,
          fmt::format("all ranks are alive, but not at the same place: {}", fmt::join(well, "; "))};
}

struct Heartbeat::Shared {
  Shared(std::uint32_t own, std::uint32_t world, BeatStore given, Clock& time)
      : rank(own), store(std::move(given)), clock(time), seen(world), counts(world) {
    for (RankSeen& one : seen) one.last = clock.now();
    heard_store = clock.now();
  }

  const std::uint32_t rank;
  const BeatStore store;
  Clock& clock;
  Mutex mutex;
  Condition changed;
  bool stopping PENSTOCK_GUARDED_BY(mutex) = false;
  bool ended PENSTOCK_GUARDED_BY(mutex) = false;
  std::string doing PENSTOCK_GUARDED_BY(mutex) = "the start";
  std::vector<RankSeen> seen PENSTOCK_GUARDED_BY(mutex);
  std::vector<std::string> counts PENSTOCK_GUARDED_BY(mutex);
  std::chrono::nanoseconds heard_store PENSTOCK_GUARDED_BY(mutex){0};

  void beat(std::uint64_t count) {
    std::string own;
    {
      Lock lock(mutex);
      own = fmt::format("{} {}", count, stopping ? "left" : doing);
    }
    try {
      store.write(rank, own);
      note(store.read());
    } catch (const std::exception&) {
      // The next write may succeed; the verdict depends on silence.
    }
  }

  void note(const std::vector<std::string>& all) {
    Lock lock(mutex);
    heard_store = clock.now();
    for (std::size_t other = 0; other < seen.size() && other < all.size(); ++other) {
      if (all[other].empty() || all[other] == counts[other]) continue;
      counts[other] = all[other];
      const std::size_t space = all[other].find(' ');
      seen[other].doing = space == std::string::npos ? "" : all[other].substr(space + 1);
      seen[other].left = seen[other].doing == "left";
      seen[other].last = heard_store;
    }
  }

  void run() {
    bool last = false;
    for (std::uint64_t count = 0; !last; ++count) {
      {
        Lock lock(mutex);
        last = stopping;
      }
      beat(count);
      Lock lock(mutex);
      if (!stopping) changed.wait_for(mutex, kEvery);
    }
    Lock lock(mutex);
    ended = true;
    changed.notify_all();
  }
};

Heartbeat::Heartbeat(std::uint32_t rank, std::uint32_t world, BeatStore store, Clock& clock)
    : shared_(std::make_shared<Shared>(rank, world, std::move(store), clock)),
      thread_("heartbeat", [shared = shared_] { shared->run(); }) {}

Heartbeat::~Heartbeat() {
  constexpr std::chrono::milliseconds kFarewell{1000};
  Lock lock(shared_->mutex);
  shared_->stopping = true;
  shared_->changed.notify_all();
  if (!shared_->ended) shared_->changed.wait_for(shared_->mutex, kFarewell);
  if (!shared_->ended) {
    ++abandoned_threads();
    thread_.detach();
  }
}

void Heartbeat::set_doing(const std::string& what) {
  Lock lock(shared_->mutex);
  shared_->doing = what;
}

Verdict Heartbeat::verdict() const {
  // Long enough to notice a silence that has just begun.
  shared_->clock.pause(kSilence + kEvery);
  Lock lock(shared_->mutex);
  return verdict_on(shared_->seen, shared_->rank, shared_->clock.now(), shared_->heard_store);
}

}  // namespace penstock::train
