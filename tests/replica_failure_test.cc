// Replicas that throw at random points: no hang, always the first cause, and the strategy stays
// usable.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <random>

#include "base/mutex.h"
#include "base/thread.h"
#include "penstock/penstock.h"
#include "penstock/report_sink.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

/// An exception of a replica itself.
struct Boom {
  std::uint32_t replica;
};
/// An exception of a cancelled replica; never the first cause.
struct Aftermath {};

/// The actions of one replica in a run: collectives, and possibly an early end before one of them.
struct Script {
  int collectives = 0;
  int throws_before = -1;   // the collective before which it throws; the last is the end of the
                            // function
  int returns_before = -1;  // returns without an error
  bool throws_again = false;
  int yields = 0;
};

void act(Replica& replica, const Script& script, std::vector<std::atomic<bool>>& threw) {
  for (int i = 0; i <= script.collectives; ++i) {
    for (int k = 0; k < script.yields; ++k) yield_thread();
    if (i == script.throws_before) {
      threw[replica.id()] = true;
      throw Boom{replica.id()};
    }
    if (i == script.returns_before || i == script.collectives) return;
    try {
      if (i % 2 == 0) {
        const double all = replica.all_reduce(Reduce::sum, 1.0);
        EXPECT_EQ(all, replica.num_replicas_in_sync());
      } else {
        replica.barrier();
      }
    } catch (const CancelledError&) {
      if (script.throws_again) throw Aftermath{};
      throw;
    }
  }
}

class ReplicaFailureTest : public ::testing::Test {
 protected:
  ReplicaFailureTest() {
    before_ = set_report_sink([](const std::string&) {});
  }
  ~ReplicaFailureTest() override { set_report_sink(before_); }

 private:
  ReportSink before_;
};

/// Runs one step in which some replicas throw, and another in which none does.
void run_once(Strategy& strategy, const Step& step, std::mt19937& random) {
  const auto draw = [&random](int below) {
    return std::uniform_int_distribution<int>(0, below - 1)(random);
  };
  const std::uint32_t replicas = strategy.num_replicas_in_sync();
  const int collectives = draw(5);
  std::vector<Script> scripts(replicas);
  std::vector<std::uint32_t> throwers;
  std::uint32_t leaver = replicas;
  for (std::uint32_t r = 0; r < replicas; ++r) {
    scripts[r].collectives = collectives;
    scripts[r].throws_again = draw(4) == 0;
    scripts[r].yields = draw(3);
  }
  if (replicas > 1 && collectives > 0 && draw(4) == 0) {
    leaver = static_cast<std::uint32_t>(draw(static_cast<int>(replicas)));
    scripts[leaver].returns_before = draw(collectives);
  } else {
    for (int i = 0; i <= draw(3); ++i) {
      const auto r = static_cast<std::uint32_t>(draw(static_cast<int>(replicas)));
      scripts[r].throws_before = draw(collectives + 1);
    }
  }
  std::vector<std::atomic<bool>> threw(replicas);
  const auto body = [&](Replica& replica, const Batch&) {
    act(replica, scripts[replica.id()], threw);
  };
  try {
    strategy.run(body, step);
    ADD_FAILURE() << "no error was thrown";
  } catch (const Boom& boom) {
    EXPECT_EQ(leaver, replicas);
    EXPECT_TRUE(threw[boom.replica]);
    // A replica that throws before an earlier collective than all others is always first: they wait
    // for it.
    for (std::uint32_t r = 0; r < replicas; ++r)
      if (threw[r]) {
        EXPECT_EQ(scripts[r].throws_before, scripts[boom.replica].throws_before);
      }
  } catch (const ConfigError& error) {
    EXPECT_LT(leaver, replicas);
    EXPECT_THAT(error.what(), HasSubstr("replica " + std::to_string(leaver) + " returned without"));
  } catch (...) {
    ADD_FAILURE() << "the error is not the first cause";
  }
  const auto sums = strategy.run(
      [](Replica& replica, const Batch&) { return replica.all_reduce(Reduce::sum, 1.0); }, step);
  for (std::uint32_t r = 0; r < replicas; ++r) EXPECT_EQ(sums[r], replicas);
}

TEST_F(ReplicaFailureTest, AReplicaThatThrowsAnywhereIsTheFirstCauseAndNothingHangs) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  const int runs = std::getenv("PENSTOCK_LONG") != nullptr ? 10'000 : 2'000;
#else
  const int runs = 10'000;
#endif
  std::mt19937 random(20260101);
  for (const std::size_t replicas : {1U, 2U, 3U, 4U, 6U}) {
    std::vector<std::string> devices;
    for (std::size_t r = 0; r < replicas; ++r) devices.push_back("cpu:" + std::to_string(r));
    MirroredStrategy strategy(devices);
    Feed feed = strategy.distribute(Dataset::range(64).batch(32));
    const auto step = feed.next();
    for (int run = 0; run < runs / 5 && !HasFailure(); ++run) {
      SCOPED_TRACE("replicas " + std::to_string(replicas) + ", run " + std::to_string(run));
      run_once(strategy, *step, random);
    }
  }
}

TEST_F(ReplicaFailureTest, AStrategyMayBeDestroyedRightAfterAFailure) {
  for (int run = 0; run < 200; ++run) {
    MirroredStrategy strategy({"cpu:0", "cpu:1", "cpu:2"});
    Feed feed = strategy.distribute(Dataset::range(6).batch(6));
    EXPECT_THROW(strategy.run(
                     [&](Replica& replica, const Batch&) {
                       if (replica.id() == static_cast<std::uint32_t>(run % 3)) throw Boom{0};
                       replica.barrier();
                     },
                     *feed.next()),
                 Boom);
  }
}

}  // namespace
}  // namespace penstock
