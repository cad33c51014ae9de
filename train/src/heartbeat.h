#pragma once
// Detects which ranks are alive. Each rank writes a count into the store once a second, with what
// it is doing, and reads the others'. So a rank that died or lost its connection is distinguished
// from a slow one.

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/thread.h"
#include "penstock/clock.h"

namespace penstock::train {

/// The store as the heartbeat uses it. May block or throw.
struct BeatStore {
  std::function<void(std::uint32_t rank, const std::string& value)> write;
  std::function<std::vector<std::string>()> read;  // of all ranks; "" if none was written yet
};

/// What is known about a rank.
struct RankSeen {
  std::string doing;                 // as it describes itself
  std::chrono::nanoseconds last{0};  // when its count last changed, by our clock
  bool left = false;                 // it announced that it left
};

/// Which ranks are missing, if any.
struct Verdict {
  bool lost = false;  // a rank died, left or lost its connection, or this one did
  std::string text;
};

class Heartbeat {
 public:
  Heartbeat(std::uint32_t rank, std::uint32_t world, BeatStore store, Clock& clock = Clock::real());
  /// The thread may hang in the store of a host that is down: it is then abandoned.
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  void set_doing(const std::string& what);
  /// Waits a few seconds and reports what is wrong with which rank. Ranks that are well are not
  /// named, unless all are.
  [[nodiscard]] Verdict verdict() const;

  static constexpr std::chrono::milliseconds kEvery{1000};
  static constexpr std::chrono::milliseconds kSilence{3500};

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
  Thread thread_;
};

/// The verdict at time `now`; `heard_store` is when the store last answered.
Verdict verdict_on(const std::vector<RankSeen>& seen, std::uint32_t own,
                   std::chrono::nanoseconds now, std::chrono::nanoseconds heard_store);

}  // namespace penstock::train
