#include "replica/scope.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "base/thread.h"
#include "penstock/report_sink.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class ScopeTest : public ::testing::Test {
 protected:
  ScopeTest() {
    before_ = set_report_sink([this](const std::string& text) { reports_ += text + "\n"; });
  }
  ~ScopeTest() override { set_report_sink(before_); }

  std::string reports_;
  MirroredStrategy two_{{"cpu:0", "cpu:1"}};
  MirroredStrategy three_{{"cpu:0", "cpu:1", "cpu:2"}};

 private:
  ReportSink before_;
};

TEST_F(ScopeTest, ScopesNest) {
  EXPECT_EQ(Strategy::current(), nullptr);
  {
    const Scope outer = two_.scope();
    EXPECT_EQ(Strategy::current(), &two_);
    {
      const Scope inner = three_.scope();
      EXPECT_EQ(Strategy::current(), &three_);
      const Scope again = three_.scope();
      EXPECT_EQ(Strategy::current(), &three_);
    }
    EXPECT_EQ(Strategy::current(), &two_);
  }
  EXPECT_EQ(Strategy::current(), nullptr);
  EXPECT_EQ(reports_, "");
}

TEST_F(ScopeTest, AScopeBelongsToItsThread) {
  const Scope scope = two_.scope();
  Thread other("other", [] { EXPECT_EQ(Strategy::current(), nullptr); });
  other.join();
}

TEST_F(ScopeTest, AnExceptionInsideAScopeIsUnchanged) {
  EXPECT_THAT(
      [&] {
        const Scope scope = two_.scope();
        throw std::out_of_range("the user's own");
      },
      ThrowsMessage<std::out_of_range>("the user's own"));
  EXPECT_EQ(Strategy::current(), nullptr);
  EXPECT_EQ(reports_, "");
}

TEST_F(ScopeTest, LeavingInAnotherThreadIsAnError) {
  auto scope = std::make_unique<Scope>(two_.scope());
  Thread other("other", [&] {
    EXPECT_THAT([&] { scope->leave(); },
                ThrowsMessage<ConfigError>(AllOf(HasSubstr("left in another thread"),
                                                 HasSubstr("-> leave it in the thread"))));
  });
  other.join();
  EXPECT_EQ(Strategy::current(), &two_);  // it is still open here
  scope->leave();
  EXPECT_EQ(Strategy::current(), nullptr);
  EXPECT_EQ(reports_, "");
}

TEST_F(ScopeTest, AScopeDestroyedInAnotherThreadIsReportedAndEnds) {
  auto scope = std::make_unique<Scope>(two_.scope());
  Thread other("other", [&] { scope.reset(); });
  other.join();
  EXPECT_THAT(reports_, HasSubstr("left in another thread"));
  EXPECT_EQ(Strategy::current(), nullptr);
  const Scope next = three_.scope();
  EXPECT_EQ(Strategy::current(), &three_);
}

TEST_F(ScopeTest, LeavingOutOfOrderIsAnErrorAndTheScopeStaysOpen) {
  Scope outer = two_.scope();
  Scope inner = three_.scope();
  EXPECT_THAT([&] { outer.leave(); }, ThrowsMessage<ConfigError>(HasSubstr("out of order")));
  EXPECT_EQ(Strategy::current(), &three_);
  inner.leave();
  outer.leave();
  EXPECT_EQ(Strategy::current(), nullptr);
}

TEST_F(ScopeTest, LeavingTwiceIsAnError) {
  Scope scope = two_.scope();
  scope.leave();
  EXPECT_THAT([&] { scope.leave(); }, ThrowsMessage<ConfigError>(HasSubstr("left twice")));
  EXPECT_THAT(scope.try_leave().value_or(""), HasSubstr("left twice"));
}

TEST_F(ScopeTest, AMovedScopeIsLeftOnce) {
  Scope scope = two_.scope();
  {
    Scope moved = std::move(scope);
    EXPECT_EQ(Strategy::current(), &two_);
  }
  EXPECT_EQ(Strategy::current(), nullptr);
  EXPECT_THAT(scope.try_leave().value_or(""), HasSubstr("moved from"));  // NOLINT: tests the error
                                                                         // after a move
}

TEST_F(ScopeTest, AStrategyMayBeDestroyedBeforeItsScope) {
  auto strategy = std::make_unique<OneDeviceStrategy>();
  const Scope scope = strategy->scope();
  strategy.reset();
  EXPECT_EQ(Strategy::current(), nullptr);
}

}  // namespace
}  // namespace penstock
