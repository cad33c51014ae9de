#include "base/thread_stack.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

TEST(ThreadStackTest, WithoutAReaderThereAreOnlyTheLines) {
  EXPECT_EQ(with_stacks({{"first", 1}, {"second", 2}}), "\n  first\n  second");
  EXPECT_EQ(with_stacks({}), "");
}

TEST(ThreadStackTest, EachLineIsFollowedByTheStackOfItsThread) {
  const StackReader before = set_stack_reader([](const std::vector<ThreadId>& threads) {
    std::vector<std::vector<std::string>> stacks;
    for (const ThreadId thread : threads)
      stacks.push_back(thread == 2 ? std::vector<std::string>{"f at a.py:3", "g at a.py:5"}
                                   : std::vector<std::string>{});
    return stacks;
  });
  EXPECT_EQ(with_stacks({{"first", 1}, {"second", 2}}),
            "\n  first\n  second\n    f at a.py:3\n    g at a.py:5");
  set_stack_reader(before);
}

TEST(ThreadStackTest, ThreadsUnknownToTheReaderHaveNoStack) {
  const StackReader before = set_stack_reader([](const std::vector<ThreadId>&) {
    return std::vector<std::vector<std::string>>{{"f at a.py:3"}};
  });
  EXPECT_EQ(with_stacks({{"first", 1}, {"second", 2}}), "\n  first\n    f at a.py:3\n  second");
  set_stack_reader(before);
}

TEST(ThreadStackTest, ThreadsHaveUniqueIds) {
  const ThreadId mine = this_thread_id();
  ThreadId other = mine;
  Thread("other", [&] { other = this_thread_id(); }).join();
  EXPECT_NE(other, mine);
  EXPECT_EQ(this_thread_id(), mine);
}

}  // namespace
}  // namespace penstock
