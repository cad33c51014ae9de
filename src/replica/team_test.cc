#include "replica/team.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

#include "penstock/report_sink.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Tensor summed(std::span<const detail::Part> parts) {
  return detail::reduce_parts(Reduce::sum, parts);
}

detail::Part one() {
  return detail::part_of(1.0, 1);
}

/// Collects the reports of the team during its lifetime.
class Reports {
 public:
  Reports() {
    before_ = set_report_sink([this](const std::string& text) {
      Lock lock(mutex_);
      text_ += text + "\n";
    });
  }
  ~Reports() { set_report_sink(before_); }
  Reports(const Reports&) = delete;
  Reports& operator=(const Reports&) = delete;
  std::string text() {
    Lock lock(mutex_);
    return text_;
  }

 private:
  ReportSink before_;
  Mutex mutex_;
  std::string text_ PENSTOCK_GUARDED_BY(mutex_);
};

TEST(TeamTest, EveryMemberRunsOnceAndTheFirstInTheCallersThread) {
  thread_local bool here = false;
  here = true;
  Team team(3, {});
  for (int round = 0; round < 100; ++round) {
    std::vector<int> calls(3);
    std::vector<int> callers(3);
    team.run({true, true, true}, [&](std::uint32_t member) {
      ++calls[member];
      callers[member] = here ? 1 : 0;
    });
    EXPECT_THAT(calls, ElementsAre(1, 1, 1));
    EXPECT_THAT(callers, ElementsAre(1, 0, 0));
  }
}

TEST(TeamTest, AbsentMembersAreNeitherCalledNorAwaited) {
  Team team(4, {});
  const std::vector<std::vector<bool>> cases{
      {true, false, true, false}, {false, true, true, true}, {false, false, false, true}};
  for (const auto& takes_part : cases) {
    std::vector<int> calls(4);
    team.run(takes_part, [&](std::uint32_t member) {
      ++calls[member];
      const double all = team.meet(member, "sum", one(), summed).item<double>();
      EXPECT_EQ(all, std::count(takes_part.begin(), takes_part.end(), true));
    });
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(calls[i], takes_part[i] ? 1 : 0);
  }
  team.run({false, false, false, false}, [](std::uint32_t) { FAIL(); });
}

TEST(TeamTest, TheFirstFailureWakesWaitingMembersAndIsRethrownUnchanged) {
  struct Boom {
    int code;
  };
  const Reports reports;
  Team team(3, {});
  std::vector<std::string> others(3);
  try {
    team.run({true, true, true}, [&](std::uint32_t member) {
      if (member == 1) throw Boom{42};
      try {
        team.meet(member, "sum", one(), summed);
      } catch (const CancelledError& error) {
        others[member] = error.what();
        throw;
      }
    });
    FAIL();
  } catch (const Boom& boom) {
    EXPECT_EQ(boom.code, 42);
  }
  for (const std::size_t member : {0U, 2U})
    EXPECT_THAT(others[member],
                AllOf(HasSubstr("replica " + std::to_string(member) + " was cancelled"),
                      HasSubstr("replica 1 failed first")));
}

TEST(TeamTest, LaterFailuresGoToTheReport) {
  Reports reports;
  Team team(2, {});
  EXPECT_THAT(
      [&] {
        team.run({true, true}, [&](std::uint32_t member) {
          if (member == 1) throw std::runtime_error("disk on fire");
          try {
            team.meet(member, "sum", one(), summed);
          } catch (const CancelledError&) {
            throw std::logic_error("cleaning up failed");
          }
        });
      },
      ThrowsMessage<std::runtime_error>("disk on fire"));
  EXPECT_THAT(reports.text(), AllOf(HasSubstr("replica 1 failed first: disk on fire"),
                                    HasSubstr("replica 0: cleaning up failed")));
}

TEST(TeamTest, CancelledReplicasAreNotReported) {
  Team team(3, {});
  Reports reports;
  EXPECT_THROW(team.run({true, true, true},
                        [&](std::uint32_t member) {
                          if (member == 1) throw std::runtime_error("disk on fire");
                          team.meet(member, "sum", one(), summed);
                        }),
               std::runtime_error);
  EXPECT_EQ(reports.text(), "");
}

TEST(TeamTest, ATeamThatFailedWorksAgain) {
  Team team(2, {});
  for (int round = 0; round < 50; ++round) {
    EXPECT_THROW(team.run({true, true},
                          [&](std::uint32_t member) {
                            if (member == 0) throw std::runtime_error("no");
                          }),
                 std::runtime_error);
    team.run({true, true}, [&](std::uint32_t member) {
      EXPECT_FALSE(team.cancelled());
      EXPECT_EQ(team.meet(member, "sum", one(), summed).item<double>(), 2.0);
    });
  }
}

TEST(TeamTest, AMemberThatReturnsWithoutTheCollectiveIsNamed) {
  const Reports reports;
  for (const std::uint32_t missing : {0U, 1U, 2U}) {
    Team team(3, {});
    EXPECT_THAT(
        [&] {
          team.run({true, true, true}, [&](std::uint32_t member) {
            if (member != missing) team.meet(member, "all_reduce(sum)", one(), summed);
          });
        },
        ThrowsMessage<ConfigError>(
            AllOf(HasSubstr("all_reduce(sum)"),
                  HasSubstr("replica " + std::to_string(missing) + " returned without it"))));
  }
}

TEST(TeamTest, AMissingMemberIsNamedAtOnceWhileOthersStillCompute) {
  const Reports reports;
  Team team(3, {});
  for (int round = 0; round < 50; ++round)
    EXPECT_THAT(
        [&] {
          team.run({true, true, true}, [&](std::uint32_t member) {
            if (member == 1) return;
            // Replica 2 computes until it is cancelled.
            while (member == 2 && !team.cancelled()) yield_thread();
            for (int i = 0; i < 100; ++i) yield_thread();
            if (member == 0) team.meet(member, "barrier", {}, [](auto) { return Tensor(); });
          });
        },
        ThrowsMessage<ConfigError>(HasSubstr("replica 1 returned without it")));
}

TEST(TeamTest, AnExtraCollectiveIsReported) {
  const Reports reports;
  Team team(2, {});
  EXPECT_THAT(
      [&] {
        team.run({true, true}, [&](std::uint32_t member) {
          team.meet(member, "barrier", {}, [](auto) { return Tensor(); });
          if (member == 1) team.meet(member, "all_reduce(sum)", one(), summed);
        });
      },
      ThrowsMessage<ConfigError>(
          AllOf(HasSubstr("replica 0 returned without it"), HasSubstr("replica 1 called it"))));
}

TEST(TeamTest, DifferentCollectivesAndShapesAreReported) {
  const Reports reports;
  Team team(2, {});
  EXPECT_THAT(
      [&] {
        team.run({true, true}, [&](std::uint32_t member) {
          team.meet(member, member == 0 ? "barrier" : "all_reduce(sum)", one(), summed);
        });
      },
      ThrowsMessage<ConfigError>(AllOf(HasSubstr("barrier"), HasSubstr("all_reduce(sum)"))));
  EXPECT_THAT(
      [&] {
        team.run({true, true}, [&](std::uint32_t member) {
          const std::vector<double> value(member + 1);
          team.meet(member, "all_reduce(sum)", detail::part_of(value, 1), summed);
        });
      },
      ThrowsMessage<ConfigError>(AllOf(HasSubstr("f64[1]"), HasSubstr("f64[2]"))));
}

TEST(TeamTest, AMemberThatSwallowsItsCancellationIsCancelledAgain) {
  const Reports reports;
  Team team(2, {});
  std::atomic<int> cancelled = 0;
  EXPECT_THROW(team.run({true, true},
                        [&](std::uint32_t member) {
                          if (member == 1) throw std::runtime_error("no");
                          for (int i = 0; i < 3; ++i) {
                            try {
                              team.meet(member, "sum", one(), summed);
                            } catch (const CancelledError&) {
                              ++cancelled;
                              EXPECT_TRUE(team.cancelled());
                            }
                          }
                        }),
               std::runtime_error);
  EXPECT_EQ(cancelled, 3);
}

TEST(TeamTest, TwoConcurrentRunsThrow) {
  Team team(2, {});
  team.run({true, true}, [&](std::uint32_t member) {
    if (member != 0) return;
    EXPECT_THAT([&] { team.run({true, true}, [](std::uint32_t) {}); },
                ThrowsMessage<ConfigError>(HasSubstr("running in another thread")));
  });
}

TEST(TeamTest, ALongWaitForAReplicaIsReported) {
  Reports reports;
  VirtualClock clock;
  Team team(2, {.clock = &clock, .stall_after = std::chrono::seconds(30)});
  team.run({true, true}, [&](std::uint32_t member) {
    // The other one may not wait yet, so the clock advances until it is reported.
    while (member == 1 && reports.text().empty()) {
      clock.advance(std::chrono::seconds(10));
      yield_thread();
    }
    team.meet(member, "all_reduce(sum)", one(), summed);
  });
  EXPECT_THAT(reports.text(), AllOf(HasSubstr("all_reduce(sum): waiting for"),
                                    HasSubstr("for replica 1, which is still computing")));
}

TEST(TeamTest, ATeamThatNeverRanEndsQuietly) {
  const Team team(8, {});
}

struct Interrupted {};

/// A member that blocks until it is released.
struct Gate {
  std::atomic<bool> inside{false};
  std::atomic<bool> open{false};
  void pass() {
    inside = true;
    open.wait(false);
  }
  void release() {
    open = true;
    open.notify_all();
  }
};

TEST(TeamTest, AnInterruptEndsTheWaitForAMemberThatDoesNotReturn) {
  Reports reports;
  const auto gate = std::make_shared<Gate>();
  const auto team = std::make_shared<Team>(3, Team::Options{.while_waiting = [gate] {
                                             if (gate->inside && !gate->open) throw Interrupted();
                                           }});
  const unsigned before = abandoned_threads();
  std::atomic<int> returned{0};
  EXPECT_THROW(team->run({true, true, true},
                         [team, gate, &returned](std::uint32_t member) {
                           if (member == 2) return gate->pass();
                           ++returned;
                         }),
               Interrupted);
  EXPECT_EQ(abandoned_threads(), before + 1);
  EXPECT_THAT(reports.text(), HasSubstr("replica 2 did not return"));
  // The team is complete again: another thread replaced the stuck one.
  std::vector<int> calls(3);
  gate->release();
  team->run({true, true, true}, [&](std::uint32_t member) {
    ++calls[member];
    EXPECT_EQ(team->meet(member, "sum", one(), summed).item<double>(), 3);
  });
  EXPECT_THAT(calls, ElementsAre(1, 1, 1));
  while (abandoned_threads() > before) yield_thread();
}

TEST(TeamTest, AnInterruptEndsAMeetingAndTheOthersAreCancelled) {
  const Reports reports;
  std::atomic<bool> waits{false};
  std::atomic<bool> interrupt{false};
  thread_local bool caller = false;
  caller = true;
  Team team(2, {.while_waiting = [&] {
              waits = true;
              if (caller && !interrupt.exchange(true)) throw Interrupted();
            }});
  std::atomic<bool> cancelled{false};
  EXPECT_THROW(team.run({true, true},
                        [&](std::uint32_t member) {
                          if (member == 0) {
                            team.meet(0, "barrier", {}, summed);
                            return;
                          }
                          while (!team.cancelled()) yield_thread();
                          cancelled = true;
                        }),
               Interrupted);
  EXPECT_TRUE(waits);
  EXPECT_TRUE(cancelled);
}

TEST(TeamTest, AnAbandonedMemberTakesNoPartInLaterCollectives) {
  const Reports reports;
  const auto gate = std::make_shared<Gate>();
  const auto told = std::make_shared<std::atomic<bool>>(false);
  const auto team = std::make_shared<Team>(2, Team::Options{.while_waiting = [gate] {
                                             if (gate->inside && !gate->open) throw Interrupted();
                                           }});
  const unsigned before = abandoned_threads();
  EXPECT_THROW(team->run({true, true},
                         [team, gate, told](std::uint32_t member) {
                           if (member == 0) return;
                           gate->pass();
                           EXPECT_TRUE(team->cancelled());
                           EXPECT_THROW(team->meet(1, "late", one(), summed), CancelledError);
                           *told = true;
                         }),
               Interrupted);
  gate->release();
  while (abandoned_threads() > before) yield_thread();
  EXPECT_TRUE(*told);
}

}  // namespace
}  // namespace penstock
