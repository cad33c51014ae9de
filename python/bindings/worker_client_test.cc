#include "worker_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <numeric>

#include "penstock/clock.h"
#include "penstock/error.h"
#include "worker_fake_for_tests.h"

namespace penstock::python {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::uint64_t> numbers_from(std::uint64_t first, std::size_t count) {
  std::vector<std::uint64_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

/// One thread plays all parts: the calls, and the workers at the other ends of the sockets.
class WorkerClientTest : public testing::Test {
 protected:
  WorkerPool& pool(unsigned workers) {
    WorkerPoolOptions options;
    options.title = "map(f)";
    options.workers = workers;
    options.host = &host_;
    options.clock = &clock_;
    options.make_processes = [this](unsigned count) {
      std::vector<std::unique_ptr<WorkerProcess>> made;
      for (unsigned i = 0; i < count; ++i) {
        auto process = std::make_unique<FakeProcess>();
        processes_.push_back(process.get());
        made.push_back(std::move(process));
      }
      return made;
    };
    pool_ = std::make_unique<WorkerPool>(options);
    return *pool_;
  }
  FakeProcess& process(std::size_t index) { return *processes_[index]; }
  FakeWorker& worker(std::size_t index = 0) { return processes_[index]->worker(); }

  /// The only event of a wait.
  template <typename Event>
  static Event only(WorkerClient& client) {
    auto events = client.wait();
    EXPECT_EQ(events.size(), 1U);
    return std::get<Event>(std::move(events.at(0)));
  }
  static std::uint64_t first_result(const WorkerAnswer& answer) {
    return WireReader(answer.results.memory(), answer.message.bytes).number();
  }
  /// Sends a request to a process that starts, and has it say that it is ready.
  void send_and_start(WorkerClient& client, std::size_t index = 0) {
    EXPECT_TRUE(client.wait().empty());
    worker(index).say_ready();
    EXPECT_TRUE(client.wait().empty());
  }

  FakeHost host_;
  VirtualClock clock_;
  std::vector<FakeProcess*> processes_;
  std::unique_ptr<WorkerPool> pool_;
  NumbersJob job_{numbers_from(10, 4)};
  NumbersJob other_job_{numbers_from(20, 4)};
};

TEST_F(WorkerClientTest, AnAnswerComesBackWithTheBlockThatWasAskedFor) {
  WorkerClient client(pool(1), job_);
  EXPECT_TRUE(client.empty());
  client.submit({1, 2});
  EXPECT_EQ(client.first_row(), 1U);
  send_and_start(client);
  const auto request = worker().receive();
  ASSERT_TRUE(request);
  EXPECT_THAT(worker().numbers_in(*request), ElementsAre(11, 12));
  worker().answer(*request);
  const auto answer = only<WorkerAnswer>(client);
  EXPECT_EQ(answer.block.first, 1U);
  EXPECT_EQ(answer.block.rows, 2U);
  EXPECT_EQ(first_result(answer), 22U);
  EXPECT_TRUE(client.empty());
}

TEST_F(WorkerClientTest, TheNextRequestIsSentWhileTheProcessIsBusyAndAThirdIsNot) {
  WorkerClient client(pool(1), job_);
  for (std::size_t row = 0; row < 3; ++row) client.submit({row, 1});
  send_and_start(client);
  EXPECT_TRUE(client.wait().empty());
  const auto first = worker().receive();
  const auto second = worker().receive();
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->slot, second->slot);
  EXPECT_FALSE(worker().receive());
  worker().answer(*first);
  {
    const auto answer = only<WorkerAnswer>(client);
    EXPECT_EQ(answer.block.first, 0U);
    client.wait();
    EXPECT_FALSE(worker().receive()) << "its slot is still being read";
  }
  client.wait();
  const auto third = worker().receive();
  ASSERT_TRUE(third);
  EXPECT_EQ(third->slot, first->slot);
}

TEST_F(WorkerClientTest, RequestsOfAnOlderCallGoFirst) {
  WorkerPool& shared = pool(1);
  WorkerClient older(shared, job_);
  WorkerClient newer(shared, other_job_);
  newer.submit({0, 1});
  EXPECT_TRUE(newer.wait().empty());
  EXPECT_TRUE(shared.process_ids().empty()) << "nothing was sent";
  older.submit({0, 1});
  send_and_start(older);
  EXPECT_THAT(worker().numbers_in(*worker().receive()), ElementsAre(10));
  newer.wait();
  EXPECT_THAT(worker().numbers_in(*worker().receive()), ElementsAre(20));
}

TEST_F(WorkerClientTest, ARequestThatWasNotBegunMovesToAWorkerThatBecomesIdle) {
  WorkerClient client(pool(2), job_);
  for (std::size_t row = 0; row < 3; ++row) client.submit({row, 1});
  EXPECT_TRUE(client.wait().empty());
  worker(0).say_ready();
  EXPECT_TRUE(client.wait().empty());
  EXPECT_TRUE(client.wait().empty());
  ASSERT_TRUE(worker(0).begin(*worker(0).receive()));
  const auto behind = worker(0).receive();
  ASSERT_TRUE(behind);
  EXPECT_THAT(worker(0).numbers_in(*behind), ElementsAre(12));
  worker(1).say_ready();
  EXPECT_TRUE(client.wait().empty());
  worker(1).answer(*worker(1).receive());
  EXPECT_EQ(only<WorkerAnswer>(client).block.first, 1U);
  EXPECT_TRUE(client.wait().empty());
  const auto moved = worker(1).receive();
  ASSERT_TRUE(moved);
  EXPECT_THAT(worker(1).numbers_in(*moved), ElementsAre(12));
  EXPECT_FALSE(worker(0).begin(*behind));
}

TEST_F(WorkerClientTest, ARequestThatWasBegunStaysWithItsWorker) {
  WorkerClient client(pool(2), job_);
  for (std::size_t row = 0; row < 3; ++row) client.submit({row, 1});
  client.wait();
  worker(0).say_ready();
  worker(1).say_ready();
  client.wait();
  client.wait();
  const std::size_t twice = worker(0).receive() && worker(0).receive() ? 0 : 1;
  const auto begun = Message{.number = 2, .slot = 1};
  ASSERT_TRUE(worker(twice).begin(begun));
  worker(1 - twice).answer(Message{.number = 1, .slot = 0, .rows = 1, .bytes = kPrefaceBytes + 8});
  EXPECT_EQ(only<WorkerAnswer>(client).block.rows, 1U);
  EXPECT_TRUE(client.wait().empty());
  while (const auto request = worker(1 - twice).receive()) EXPECT_EQ(request->number, 1U);
}

TEST_F(WorkerClientTest, ACallThatLeavesWhileTheProcessIsBusyLeavesAnAnswerThatTheNextOneDrops) {
  WorkerPool& shared = pool(1);
  auto first = std::make_unique<WorkerClient>(shared, job_);
  first->submit({0, 1});
  send_and_start(*first);
  const auto abandoned = worker().receive();
  ASSERT_TRUE(worker().begin(*abandoned));
  first.reset();
  WorkerClient second(shared, other_job_);
  second.submit({0, 1});
  EXPECT_TRUE(second.wait().empty());
  EXPECT_FALSE(worker().receive()) << "the process is still at what nobody wants";
  worker().answer(*abandoned);
  EXPECT_TRUE(second.wait().empty());
  worker().answer(*worker().receive());
  EXPECT_EQ(first_result(only<WorkerAnswer>(second)), 40U);
  EXPECT_EQ(process(0).starts, 1);
}

TEST_F(WorkerClientTest, AProcessThatDoesNotReturnFromWhatNobodyWantsIsReplaced) {
  WorkerPool& shared = pool(1);
  auto first = std::make_unique<WorkerClient>(shared, job_);
  first->submit({0, 1});
  send_and_start(*first);
  first.reset();
  WorkerClient second(shared, other_job_);
  second.submit({0, 1});
  EXPECT_TRUE(second.wait().empty());
  EXPECT_EQ(process(0).starts, 1);
  clock_.advance(kPatience + milliseconds(1));
  EXPECT_TRUE(second.wait().empty());
  EXPECT_EQ(process(0).starts, 2);
  worker().say_ready();
  worker().answer(*worker().receive());
  EXPECT_TRUE(second.wait().empty());
  EXPECT_EQ(first_result(only<WorkerAnswer>(second)), 40U);
}

TEST_F(WorkerClientTest, AnOwnerThatLeavesHandsItsWorkerToTheCallThatWaitsBehindIt) {
  WorkerPool& shared = pool(1);
  auto owner = std::make_unique<WorkerClient>(shared, job_);
  owner->submit({0, 1});
  send_and_start(*owner);
  WorkerClient heir(shared, other_job_);
  heir.submit({0, 1});
  EXPECT_TRUE(heir.wait().empty());
  const auto abandoned = worker().receive();
  const auto wanted = worker().receive();
  ASSERT_TRUE(abandoned && wanted);
  owner.reset();
  worker().answer(*abandoned);
  EXPECT_TRUE(heir.wait().empty());
  worker().answer(*wanted);
  EXPECT_EQ(first_result(only<WorkerAnswer>(heir)), 40U);
}

TEST_F(WorkerClientTest, AWaitingRequestIsTakenBackWhenItsCallLeaves) {
  WorkerPool& shared = pool(1);
  WorkerClient owner(shared, job_);
  owner.submit({0, 1});
  send_and_start(owner);
  auto heir = std::make_unique<WorkerClient>(shared, other_job_);
  heir->submit({0, 1});
  EXPECT_TRUE(heir->wait().empty());
  heir.reset();
  const auto wanted = worker().receive();
  const auto taken_back = worker().receive();
  ASSERT_TRUE(wanted && taken_back);
  EXPECT_TRUE(worker().begin(*wanted));
  EXPECT_FALSE(worker().begin(*taken_back));
  worker().answer(*wanted);
  EXPECT_EQ(first_result(only<WorkerAnswer>(owner)), 20U);
}

TEST_F(WorkerClientTest, ABegunRequestWhoseCallLeftIsAnsweredForNobody) {
  WorkerPool& shared = pool(1);
  WorkerClient owner(shared, job_);
  owner.submit({0, 1});
  send_and_start(owner);
  auto heir = std::make_unique<WorkerClient>(shared, other_job_);
  heir->submit({0, 1});
  EXPECT_TRUE(heir->wait().empty());
  worker().answer(*worker().receive());
  const auto begun = worker().receive();
  ASSERT_TRUE(worker().begin(*begun));
  heir.reset();
  EXPECT_EQ(first_result(only<WorkerAnswer>(owner)), 20U);
  WorkerClient next(shared, job_);
  next.submit({3, 1});
  EXPECT_TRUE(next.wait().empty());
  worker().answer(*begun);
  EXPECT_TRUE(next.wait().empty());
  worker().answer(*worker().receive());
  EXPECT_EQ(first_result(only<WorkerAnswer>(next)), 26U);
}

TEST_F(WorkerClientTest, ADeathNamesTheBlockAndTheRowThatTheProcessWasAt) {
  WorkerClient client(pool(1), job_);
  client.submit({0, 4});
  send_and_start(client);
  worker().at_row(*worker().receive(), 2);
  process(0).die();
  const auto death = only<WorkerDeath>(client);
  EXPECT_EQ(death.how, "was killed by a test");
  EXPECT_EQ(death.row, 2U);
  EXPECT_TRUE(death.by_the_block);
  EXPECT_TRUE(client.empty());
  client.submit({0, 4, 1});
  send_and_start(client);
  EXPECT_EQ(process(0).starts, 2);
  worker().answer(*worker().receive());
  EXPECT_EQ(only<WorkerAnswer>(client).block.deaths, 1);
}

TEST_F(WorkerClientTest, AProcessThatDiedWhileItWasIdleIsReplacedBeforeARequestIsSent) {
  WorkerClient client(pool(1), job_);
  client.submit({0, 1});
  send_and_start(client);
  worker().answer(*worker().receive());
  EXPECT_EQ(only<WorkerAnswer>(client).block.first, 0U);
  process(0).die();
  client.submit({1, 1});
  ASSERT_TRUE(client.wait().empty()) << "no death is reported";
  ASSERT_EQ(process(0).starts, 2);
  worker().say_ready();
  EXPECT_TRUE(client.wait().empty());
  worker().answer(*worker().receive());
  EXPECT_EQ(first_result(only<WorkerAnswer>(client)), 22U);
}

TEST_F(WorkerClientTest, ADeathAtWhatNobodyWantsIsNotThatOfTheBlockThatWaits) {
  WorkerPool& shared = pool(1);
  auto first = std::make_unique<WorkerClient>(shared, job_);
  first->submit({0, 1});
  send_and_start(*first);
  first.reset();
  WorkerClient second(shared, other_job_);
  second.submit({0, 1});
  EXPECT_TRUE(second.wait().empty());
  process(0).die();
  EXPECT_FALSE(only<WorkerDeath>(second).by_the_block);
}

TEST_F(WorkerClientTest, ACallThatWaitsBehindADeadProcessSendsItsRequestToTheNextOne) {
  WorkerPool& shared = pool(1);
  WorkerClient owner(shared, job_);
  owner.submit({0, 1});
  send_and_start(owner);
  WorkerClient heir(shared, other_job_);
  heir.submit({0, 1});
  EXPECT_TRUE(heir.wait().empty());
  process(0).die();
  EXPECT_EQ(only<WorkerDeath>(owner).block.first, 0U);
  EXPECT_TRUE(heir.wait().empty());
  EXPECT_EQ(process(0).starts, 2);
  worker().say_ready();
  worker().answer(*worker().receive());
  EXPECT_TRUE(heir.wait().empty());
  EXPECT_EQ(first_result(only<WorkerAnswer>(heir)), 40U);
}

TEST_F(WorkerClientTest, ThreeDeathsInARowWhileStartingAreAResourceError) {
  WorkerClient client(pool(1), job_);
  for (int i = 0; i < 2; ++i) {
    client.submit({0, 1});
    EXPECT_TRUE(client.wait().empty());
    process(0).die();
    EXPECT_FALSE(only<WorkerDeath>(client).by_the_block);
  }
  client.submit({0, 1});
  EXPECT_TRUE(client.wait().empty());
  process(0).die();
  EXPECT_THROW(client.wait(), ResourceError);
}

TEST_F(WorkerClientTest, AFunctionThatAWorkerCannotLoadIsAConfigErrorThatSaysWhy) {
  WorkerPool& shared = pool(1);
  {
    WorkerClient client(shared, job_);
    client.submit({0, 1});
    EXPECT_TRUE(client.wait().empty());
    worker().say_cannot("no module named cats");
    try {
      client.wait();
      FAIL() << "no exception";
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.message(), HasSubstr("map(f)"));
      EXPECT_THAT(error.message(), HasSubstr("no module named cats"));
    }
  }
  WorkerClient next(shared, job_);
  next.submit({0, 1});
  send_and_start(next);
  EXPECT_EQ(process(0).starts, 2);
  worker().answer(*worker().receive());
  EXPECT_EQ(first_result(only<WorkerAnswer>(next)), 20U);
}

TEST_F(WorkerClientTest, WithdrawAfterForgetsUnsentRequestsBehindARow) {
  WorkerClient client(pool(1), job_);
  client.submit({2, 1});
  client.submit({0, 1});
  client.submit({1, 1});
  EXPECT_EQ(client.first_row(), 0U);
  client.withdraw_after(0);
  send_and_start(client);
  const auto request = worker().receive();
  EXPECT_THAT(worker().numbers_in(*request), ElementsAre(10));
  EXPECT_FALSE(worker().receive());
  worker().answer(*request);
  EXPECT_EQ(only<WorkerAnswer>(client).block.first, 0U);
  EXPECT_TRUE(client.empty());
}

}  // namespace
}  // namespace penstock::python
