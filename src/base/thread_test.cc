#include "base/thread.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <utility>

namespace penstock {
namespace {

TEST(ThreadTest, JoinsWhenDestroyedOrAsked) {
  std::atomic<int> ended = 0;
  {
    Thread first("first", [&] { ++ended; });
    first.join();
    EXPECT_EQ(ended, 1);
    first.join();
    const Thread second("second", [&] { ++ended; });
  }
  EXPECT_EQ(ended, 2);
}

TEST(ThreadTest, AMovedThreadIsJoinedByItsNewOwner) {
  std::atomic<int> ended = 0;
  Thread first("first", [&] { ++ended; });
  Thread second = std::move(first);
  second.join();
  EXPECT_EQ(ended, 1);
}

TEST(ThreadTest, ADetachedThreadOutlivesItsOwner) {
  const auto go = std::make_shared<std::atomic<bool>>(false);
  const auto ended = std::make_shared<std::atomic<bool>>(false);
  {
    Thread thread("detached", [go, ended] {
      go->wait(false);
      *ended = true;
      ended->notify_all();
    });
    thread.detach();
    thread.join();
  }
  EXPECT_FALSE(*ended);
  *go = true;
  go->notify_all();
  ended->wait(false);
}

TEST(ThreadTest, AssigningToARunningThreadJoinsItFirst) {
  std::atomic<bool> go = false;
  std::atomic<bool> first_ended = false;
  Thread thread("first", [&] {
    go.wait(false);
    first_ended = true;
  });
  Thread other("second", [&] {
    go = true;
    go.notify_all();
  });
  thread = std::move(other);
  EXPECT_TRUE(first_ended);
}

TEST(ThreadTest, CarriesTheFirst15LettersOfItsName) {
  std::string name;
  Thread("penstock-worker-7", [&] {
    std::array<char, 16> text{};
    pthread_getname_np(pthread_self(), text.data(), text.size());
    name = text.data();
  }).join();
  EXPECT_EQ(name, "penstock-worker");
}

TEST(ThreadTest, UsableCoresObeysTheAffinityMask) {
  EXPECT_GE(usable_cores(), 1U);
  unsigned narrowed = 0;
  // In a separate thread, since the mask belongs to the thread.
  Thread("narrow", [&] {
    cpu_set_t mask;
    ASSERT_EQ(sched_getaffinity(0, sizeof mask, &mask), 0);
    std::size_t first = 0;
    while (!CPU_ISSET(first, &mask)) ++first;
    CPU_ZERO(&mask);
    CPU_SET(first, &mask);
    ASSERT_EQ(sched_setaffinity(0, sizeof mask, &mask), 0);
    narrowed = usable_cores();
  }).join();
  EXPECT_EQ(narrowed, 1U);
}

}  // namespace
}  // namespace penstock
