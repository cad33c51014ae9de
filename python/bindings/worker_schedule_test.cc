#include "worker_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "penstock/error.h"

namespace penstock::python {
namespace {

using State = ScheduledWorker::State;
using Process = ScheduledWorker::Process;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr Nanoseconds kNow{1000};

/// A worker whose process is ready and busy with a request of call 1, in slot 0.
ScheduledWorker busy_worker() {
  ScheduledWorker worker;
  worker.claim(1);
  worker.process_started();
  worker.begin(0);
  worker.process_ready();
  return worker;
}

TEST(ScheduledWorkerTest, ARequestTakesAnIdleWorkerThroughClaimedAndBusyBackToIdle) {
  ScheduledWorker worker;
  EXPECT_EQ(worker.state(), State::idle);
  worker.claim(7);
  EXPECT_EQ(worker.state(), State::claimed);
  EXPECT_EQ(worker.owner(), 7U);
  worker.process_started();
  EXPECT_EQ(worker.begin(0), 1U);
  EXPECT_EQ(worker.state(), State::busy);
  EXPECT_EQ(worker.release(false, kNow), 0U);
  EXPECT_EQ(worker.state(), State::idle);
  EXPECT_EQ(worker.owes(), 0U);
}

TEST(ScheduledWorkerTest, AChangeThatItsStateDoesNotAllowIsAnInternalError) {
  ScheduledWorker worker;
  EXPECT_THROW(worker.begin(0), InternalError);
  EXPECT_THROW(worker.reserve_next(2), InternalError);
  EXPECT_THROW(worker.send_next(), InternalError);
  EXPECT_THROW(worker.take_back_next(), InternalError);
  EXPECT_THROW(worker.abandon_next(), InternalError);
  EXPECT_THROW(worker.release(false, kNow), InternalError);
  EXPECT_THROW(worker.process_started(), InternalError);
  worker.claim(1);
  EXPECT_THROW(worker.claim(2), InternalError);
}

TEST(ScheduledWorkerTest, TakesAnotherRequestOnlyWhileItIsBusyAndReady) {
  ScheduledWorker worker;
  EXPECT_FALSE(worker.takes_another());
  worker.claim(1);
  worker.process_started();
  EXPECT_FALSE(worker.takes_another());
  worker.begin(0);
  EXPECT_FALSE(worker.takes_another()) << "the process has not loaded the function yet";
  worker.process_ready();
  EXPECT_TRUE(worker.takes_another());
  worker.reserve_next(2);
  EXPECT_FALSE(worker.takes_another());
  worker.send_next();
  EXPECT_FALSE(worker.takes_another());
}

TEST(ScheduledWorkerTest, TakesNoRequestIntoASlotWhoseResultsAreBeingRead) {
  ScheduledWorker worker = busy_worker();
  worker.set_being_read(1, true);
  EXPECT_FALSE(worker.takes_another());
  worker.set_being_read(1, false);
  EXPECT_TRUE(worker.takes_another());
  worker.set_being_read(0, true);
  EXPECT_EQ(worker.free_slot(), 1U);
  worker.set_being_read(1, true);
  EXPECT_EQ(worker.free_slot(), std::nullopt);
}

TEST(ScheduledWorkerTest, TheHeirOfASentRequestIsBusyInTheOtherSlotAfterRelease) {
  ScheduledWorker worker = busy_worker();
  const std::uint64_t number = worker.reserve_next(2);
  EXPECT_TRUE(worker.is_next(number));
  worker.send_next();
  EXPECT_TRUE(worker.is_next(number));
  EXPECT_EQ(worker.release(false, kNow), 2U);
  EXPECT_FALSE(worker.is_next(number));
  EXPECT_EQ(worker.state(), State::busy);
  EXPECT_EQ(worker.owner(), 2U);
  EXPECT_EQ(worker.heir(), 0U);
  EXPECT_EQ(worker.slot(), 1U);
}

TEST(ScheduledWorkerTest, AnHeirThatIsStillWritingHasToSendItsRequestAfterRelease) {
  ScheduledWorker worker = busy_worker();
  worker.reserve_next(2);
  EXPECT_EQ(worker.release(false, kNow), 2U);
  EXPECT_EQ(worker.state(), State::claimed);
  EXPECT_EQ(worker.owner(), 2U);
}

TEST(ScheduledWorkerTest, AnHeirWhoseProcessDiedHasToSendItsRequestAgain) {
  ScheduledWorker worker = busy_worker();
  worker.reserve_next(2);
  worker.send_next();
  worker.process_stopped();
  EXPECT_EQ(worker.release(false, kNow), 2U);
  EXPECT_EQ(worker.state(), State::claimed);
  worker.process_started();
  EXPECT_EQ(worker.process(), Process::starting);
}

TEST(ScheduledWorkerTest, ARequestThatWaitsCanBeTakenBackBeforeAndAfterItIsSent) {
  ScheduledWorker worker = busy_worker();
  worker.reserve_next(2);
  worker.take_back_next();
  EXPECT_EQ(worker.state(), State::busy);
  EXPECT_EQ(worker.heir(), 0U);
  worker.reserve_next(3);
  worker.send_next();
  worker.take_back_next();
  EXPECT_EQ(worker.state(), State::busy);
  EXPECT_EQ(worker.owner(), 1U);
  EXPECT_TRUE(worker.takes_another());
}

TEST(ScheduledWorkerTest, AnAbandonedRequestLeavesAnIdleWorkerThatOwesItsAnswer) {
  ScheduledWorker worker = busy_worker();
  const std::uint64_t number = worker.reserve_next(2);
  worker.send_next();
  worker.abandon_next();
  EXPECT_FALSE(worker.is_next(number));
  EXPECT_FALSE(worker.takes_another());
  EXPECT_EQ(worker.release(false, kNow), 0U);
  EXPECT_EQ(worker.state(), State::idle);
  EXPECT_EQ(worker.owes(), 1U);
  worker.heard_owed_answer();
  EXPECT_EQ(worker.owes(), 0U);
}

TEST(ScheduledWorkerTest, AnOwnerThatLeavesUnansweredLeavesAnOwedAnswerToItsHeir) {
  ScheduledWorker worker = busy_worker();
  worker.reserve_next(2);
  worker.send_next();
  EXPECT_EQ(worker.release(true, kNow), 2U);
  EXPECT_EQ(worker.state(), State::busy);
  EXPECT_EQ(worker.owes(), 1U);
  EXPECT_FALSE(worker.takes_another()) << "while it owes an answer";
  worker.heard_owed_answer();
  EXPECT_TRUE(worker.takes_another());
}

TEST(ScheduledWorkerTest, AProcessThatIsGoneOwesNothing) {
  ScheduledWorker worker = busy_worker();
  worker.process_stopped();
  EXPECT_EQ(worker.release(true, kNow), 0U);
  EXPECT_EQ(worker.owes(), 0U);
  worker = busy_worker();
  worker.reserve_next(2);
  worker.send_next();
  worker.abandon_next();
  worker.process_stopped();
  EXPECT_EQ(worker.release(true, kNow), 0U);
  EXPECT_EQ(worker.owes(), 0U);
}

TEST(ScheduledWorkerTest, AnOwedAnswerIsOverdueAfterThePatienceThatCountsFromTheRelease) {
  using std::chrono::milliseconds;
  ScheduledWorker worker = busy_worker();
  EXPECT_FALSE(worker.overdue(milliseconds(900), milliseconds(5)));
  worker.release(true, milliseconds(100));
  EXPECT_FALSE(worker.overdue(milliseconds(105), milliseconds(5)));
  EXPECT_TRUE(worker.overdue(milliseconds(106), milliseconds(5)));
}

TEST(ScheduledWorkerTest, TakesNoMoreThan64RequestsThatItHasNotAnswered) {
  ScheduledWorker worker = busy_worker();
  int taken = 1;
  while (worker.takes_another()) {
    worker.reserve_next(2);
    worker.send_next();
    worker.take_back_next();
    ++taken;
  }
  EXPECT_EQ(taken, 64);
  worker.heard(64);
  EXPECT_TRUE(worker.takes_another());
}

TEST(WorkerScheduleTest, PlacesGoToTheOldestCallThatWantsOne) {
  WorkerSchedule schedule;
  schedule.add_workers(1);
  const Ticket older = schedule.enter();
  const Ticket newer = schedule.enter();
  EXPECT_FALSE(schedule.place_for(newer));
  EXPECT_THAT(schedule.to_wake(), ElementsAre(older));
  schedule.want_no_place(older);
  EXPECT_THAT(schedule.to_wake(), ElementsAre(newer));
  ASSERT_TRUE(schedule.place_for(newer));
  EXPECT_EQ(schedule.worker(0).owner(), newer);
  schedule.want_place(older);
  EXPECT_TRUE(schedule.older_wants_place(newer));
}

TEST(WorkerScheduleTest, AllWorkersAreTakenBeforeARequestWaitsBehindAnother) {
  WorkerSchedule schedule;
  schedule.add_workers(2);
  const Ticket call = schedule.enter();
  const auto first = schedule.place_for(call);
  ASSERT_TRUE(first);
  EXPECT_FALSE(first->follows);
  ScheduledWorker& worker = schedule.worker(first->worker);
  worker.process_started();
  worker.begin(0);
  worker.process_ready();
  const auto second = schedule.place_for(call);
  ASSERT_TRUE(second);
  EXPECT_FALSE(second->follows);
  EXPECT_NE(second->worker, first->worker);
  const auto third = schedule.place_for(call);
  ASSERT_TRUE(third);
  EXPECT_TRUE(third->follows);
  EXPECT_EQ(third->worker, first->worker);
  EXPECT_EQ(third->slot, 1U);
  EXPECT_TRUE(worker.is_next(third->number));
  EXPECT_FALSE(schedule.place_for(call)) << "one is claimed, the other has two requests";
}

TEST(WorkerScheduleTest, AnIdleWorkerThatOwesNothingGoesFirstAndThenTheOneUsedLast) {
  WorkerSchedule schedule;
  schedule.add_workers(3);
  const Ticket call = schedule.enter();
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_EQ(schedule.place_for(call)->worker, i);
    schedule.worker(i).process_started();
    schedule.worker(i).begin(0);
  }
  schedule.release(1, false, kNow);
  schedule.release(0, false, kNow);
  schedule.release(2, true, kNow);
  EXPECT_EQ(schedule.idle_workers(), 3U);
  EXPECT_EQ(schedule.place_for(call)->worker, 0U);
  EXPECT_EQ(schedule.place_for(call)->worker, 1U);
  EXPECT_EQ(schedule.place_for(call)->worker, 2U);
}

TEST(WorkerScheduleTest, WhenNoCallWantsAPlaceTheHeirsAreWoken) {
  WorkerSchedule schedule;
  schedule.add_workers(1);
  const Ticket owner = schedule.enter();
  const Ticket heir = schedule.enter();
  schedule.place_for(owner);
  schedule.worker(0).process_started();
  schedule.worker(0).begin(0);
  schedule.worker(0).process_ready();
  schedule.want_no_place(owner);
  ASSERT_TRUE(schedule.place_for(heir));
  EXPECT_THAT(schedule.to_wake(), ElementsAre(heir)) << "it wants more places";
  schedule.want_no_place(heir);
  EXPECT_THAT(schedule.to_wake(), ElementsAre(heir)) << "an idle worker would be better";
  EXPECT_EQ(schedule.release(0, false, kNow), heir);
  EXPECT_EQ(schedule.idle_workers(), 0U);
  EXPECT_THAT(schedule.to_wake(), IsEmpty());
}

}  // namespace
}  // namespace penstock::python
