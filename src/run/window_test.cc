#include "run/window.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <utility>
#include <vector>

#include "penstock/error.h"
#include "run/plan_for_tests.h"

namespace penstock {
namespace {

constexpr std::uint64_t kRows = 8;  // of a step

/// Opens steps of `kRows` numbers.
class NumberOpener final : public StepOpener {
 public:
  void open(StepInFlight& step, std::uint64_t number) override {
    opened.push_back(number);
    if (asks) return step.open_asked(number, testing::rows_at(number, 1));
    step.open(number, testing::rows_at(number * kRows, kRows));
    cut(step);
  }
  void open_pulled(StepInFlight& step) override { cut(step); }
  [[nodiscard]] bool reads_ahead() const override { return ahead; }
  [[nodiscard]] std::uint64_t rows_ahead() const override { return 0; }

  std::vector<std::uint64_t> opened;
  std::uint64_t learned = 0;  // rows of each step
  bool ahead = false;
  bool asks = false;
  bool whole = false;

 private:
  void cut(StepInFlight& step) {
    step.cut({.whole = whole}, shape_.layout, *shape_.ring);
    step.set_learned(learned);
    step.await_rows();
  }
  BatchShape shape_ = testing::shape_of_numbers(kRows);
};

class WindowTest : public ::testing::Test {
 protected:
  Window& window(WindowSettings settings = {}) {
    if (settings.end == 0) settings.end = 100;
    window_ = std::make_unique<Window>(std::move(settings), opener_, clock_);
    return *window_;
  }
  /// Begins the window; a task takes `task_rows` rows at first.
  void begin(unsigned threads, std::uint64_t task_rows = kRows) {
    const std::uint64_t divisor = 4ULL * std::max(1U, threads);
    window_->begin(
        {.threads = threads, .step_rows = task_rows * divisor, .step_bytes = 1, .steps_wished = 4},
        kRows);
  }
  static void finish(Window& window, Task& task) {
    for (const Piece& piece : task.pieces)
      if (piece.step->arrived(piece.rows)) piece.step->set_ready();
    window.end_task(task, 0);
  }
  std::vector<std::uint64_t> take() {
    std::deque<std::unique_ptr<StepInFlight>> ready;
    window_->take_ready(ready, spent_);
    std::vector<std::uint64_t> numbers;
    for (auto& step : ready) {
      numbers.push_back(step->number());
      window_->count_delivered();
      step->bytes.resize(0);
      spent_.push_back(std::move(step));
    }
    return numbers;
  }

  NumberOpener opener_;
  VirtualClock clock_;
  std::vector<std::unique_ptr<StepInFlight>> spent_;
  std::unique_ptr<Window> window_;
};

using Numbers = std::vector<std::uint64_t>;

TEST_F(WindowTest, OneThreadLearnsTheShapeBeforeAnyStepIsOpened) {
  Window& window = this->window({.threads = 2});
  Task learning;
  ASSERT_TRUE(window.begin_task(learning));
  EXPECT_EQ(learning.kind, Task::Kind::learn);
  Task other;
  EXPECT_FALSE(window.begin_task(other));
  begin(2);
  window.end_task(learning, 0);
  ASSERT_TRUE(window.begin_task(other));
  EXPECT_EQ(other.kind, Task::Kind::rows);
  EXPECT_EQ(opener_.opened, Numbers{0});
  finish(window, other);
}

TEST_F(WindowTest, EachRowIsClaimedOnceOldestFirst) {
  Window& window = this->window({.threads = 1, .end = 3});
  begin(1, 3);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> rows;  // of all pieces
  std::vector<std::unique_ptr<Task>> tasks;
  while (true) {
    auto task = std::make_unique<Task>();
    if (!window.begin_task(*task)) break;
    for (const Piece& piece : task->pieces)
      for (std::uint64_t row = 0; row < piece.rows; ++row)
        rows.emplace_back(piece.step->number(), piece.first + row);
    tasks.push_back(std::move(task));
  }
  std::vector<std::pair<std::uint64_t, std::uint64_t>> expected;
  for (std::uint64_t step = 0; step < 3; ++step)
    for (std::uint64_t row = 0; row < kRows; ++row) expected.emplace_back(step, row);
  EXPECT_EQ(rows, expected);
  EXPECT_GT(tasks.size(), 3U) << "a step is more than a task";
  for (auto& task : tasks) finish(window, *task);
}

TEST_F(WindowTest, NoMoreStepsAreOpenedThanTheWindowAllows) {
  Window& window = this->window({.threads = 1});
  opener_.ahead = true;
  begin(1);
  Task task;
  ASSERT_TRUE(window.begin_task(task));
  EXPECT_EQ(opener_.opened, (Numbers{0, 1, 2, 3})) << "as many as requested";
  finish(window, task);
  EXPECT_EQ(take(), Numbers{0});
  Task next;
  ASSERT_TRUE(window.begin_task(next));
  EXPECT_EQ(opener_.opened.size(), 5U);
  finish(window, next);
}

TEST_F(WindowTest, StepsAreTakenInOrderUpToTheFirstThatIsNotReady) {
  Window& window = this->window({.threads = 1});
  begin(1);
  Task first;
  Task second;
  Task third;
  ASSERT_TRUE(window.begin_task(first));
  ASSERT_TRUE(window.begin_task(second));
  ASSERT_TRUE(window.begin_task(third));
  finish(window, second);
  EXPECT_EQ(window.look(Window::Awaited::ready_step), Window::Found::nothing);
  EXPECT_EQ(window.look(Window::Awaited::step), Window::Found::awaited);
  EXPECT_EQ(take(), Numbers{});
  finish(window, first);
  EXPECT_EQ(window.look(Window::Awaited::ready_step), Window::Found::awaited);
  trace::WaitView view;
  EXPECT_TRUE(window.wait(Window::Awaited::ready_step, std::chrono::hours(1), view));
  EXPECT_EQ(take(), (Numbers{0, 1}));
  EXPECT_EQ(window.delivered(), 2U);
  finish(window, third);
  EXPECT_EQ(take(), Numbers{2});
}

TEST_F(WindowTest, AStepWithoutMissingRowsIsReadyWithoutATask) {
  Window& window = this->window({.threads = 1, .end = 1});
  opener_.learned = kRows;
  begin(1);
  Task task;
  EXPECT_FALSE(window.begin_task(task));
  EXPECT_EQ(take(), Numbers{0});
}

TEST_F(WindowTest, LearnedRowsAreNotClaimed) {
  Window& window = this->window({.threads = 1, .end = 1});
  opener_.learned = 3;
  begin(1);
  Task task;
  ASSERT_TRUE(window.begin_task(task));
  ASSERT_EQ(task.pieces.size(), 1U);
  EXPECT_EQ(task.pieces[0].first, 3U);
  EXPECT_EQ(task.pieces[0].rows, kRows - 3);
  finish(window, task);
  EXPECT_EQ(take(), Numbers{0});
}

TEST_F(WindowTest, ARequestedOrWholeStepIsOnePiece) {
  for (const bool asks : {false, true}) {
    opener_.asks = asks;
    opener_.whole = !asks;
    Window& window = this->window({.threads = 1, .end = 1});
    begin(1, 2);
    Task task;
    ASSERT_TRUE(window.begin_task(task));
    ASSERT_EQ(task.pieces.size(), 1U);
    EXPECT_TRUE(task.pieces[0].whole);
    EXPECT_EQ(task.asked_index.has_value(), asks);
    Task other;
    EXPECT_FALSE(window.begin_task(other));
    finish(window, task);
    EXPECT_EQ(take(), Numbers{0});
  }
}

TEST_F(WindowTest, WithoutThreadsOneStepIsInFlight) {
  Window& window = this->window({.threads = 0});
  begin(0);
  Task task;
  ASSERT_TRUE(window.begin_task(task));
  EXPECT_EQ(task.pieces.size(), 1U);
  EXPECT_EQ(task.pieces[0].rows, kRows);
  Task other;
  EXPECT_FALSE(window.begin_task(other));
  finish(window, task);
}

TEST_F(WindowTest, AfterStopThereIsNoWorkAndAWaitIsCancelled) {
  Window& window = this->window({.threads = 2});
  begin(2);
  Task task;
  ASSERT_TRUE(window.begin_task(task));
  window.stop();
  EXPECT_TRUE(task.activity.cancelled);
  Task other;
  EXPECT_FALSE(window.begin_task(other));
  trace::WaitView view;
  EXPECT_TRUE(window.wait(Window::Awaited::step, std::chrono::hours(1), view));
  EXPECT_THROW((void)window.look(Window::Awaited::step), CancelledError);
  window.end_task(task, 0);
}

TEST_F(WindowTest, AnExceptionInATaskIsThrownToTheConsumer) {
  Window& window = this->window({.threads = 2});
  begin(2);
  Task task;
  ASSERT_TRUE(window.begin_task(task));
  window.break_task(task, std::make_exception_ptr(std::logic_error("broken")));
  EXPECT_THROW((void)window.look(Window::Awaited::step), std::logic_error);
  Task other;
  EXPECT_FALSE(window.begin_task(other));
  EXPECT_EQ(window.inspect([](const auto&, const auto& tasks) { return tasks.size(); }), 0U);
}

TEST_F(WindowTest, TheWindowDoesNotShrinkToTheStepsOfAStuckThread) {
  Window& window = this->window({.threads = 2, .end = 100'000});
  begin(2);
  const auto run = [&](Nanoseconds took) {
    Task task;
    if (!window.begin_task(task)) return false;
    clock_.advance(took);
    std::uint64_t rows = 0;
    for (const Piece& piece : task.pieces) {
      rows += piece.rows;
      if (piece.step->arrived(piece.rows)) piece.step->set_ready();
    }
    window.end_task(task, rows);
    take();
    return true;
  };
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(run(Nanoseconds(100)));
  Task stuck;
  ASSERT_TRUE(window.begin_task(stuck));
  EXPECT_GT(stuck.steps, 8U) << "rows that cost next to nothing";
  // Costly rows: as few steps as there are threads would be enough.
  ASSERT_TRUE(run(std::chrono::seconds(1)));
  ASSERT_TRUE(run(std::chrono::seconds(1)));
  EXPECT_TRUE(run(std::chrono::seconds(1)));
  window.end_task(stuck, 0);
}

/// Has no work; counts the calls of pool threads.
class AskedWork final : public Work {
 public:
  bool run_one() override {
    Lock lock(mutex_);
    ++asked_;
    changed_.notify_all();
    return false;
  }
  /// Returns true after `count` calls; false if that does not happen.
  bool wait_for(int count) {
    Lock lock(mutex_);
    for (int i = 0; i < 600 && asked_ < count; ++i)
      changed_.wait_for(mutex_, std::chrono::milliseconds(100));
    return asked_ >= count;
  }

 private:
  Mutex mutex_;
  Condition changed_;
  int asked_ PENSTOCK_GUARDED_BY(mutex_) = 0;
};

// A thread that is stuck in a function may hold all steps that the window allows.
TEST_F(WindowTest, AStarvedThreadIsWokenWhenAWaitWidensTheWindow) {
  Pool pool(1);
  const auto work = std::make_shared<AskedWork>();
  pool.attach(work, 1);
  ASSERT_TRUE(work->wait_for(1));
  Window& window = this->window({.threads = 2});
  begin(2);
  window.attach(&pool);
  while (true) {
    Task task;
    if (!window.begin_task(task)) break;
    window.end_task(task, 0);  // without its rows
  }
  const std::size_t opened = opener_.opened.size();
  trace::WaitView view;
  EXPECT_FALSE(window.wait(Window::Awaited::ready_step, std::chrono::microseconds(1), view));
  EXPECT_EQ(view.busy, 0U);
  EXPECT_TRUE(work->wait_for(2));
  Task task;
  EXPECT_TRUE(window.begin_task(task));
  EXPECT_GT(opener_.opened.size(), opened);
  window.stop();
  window.end_task(task, 0);
  pool.detach(*work);
}

class StreamWindowTest : public WindowTest {
 protected:
  /// A pulled step.
  static std::unique_ptr<StepInFlight> pulled(Window& window, Task& task, std::uint64_t number) {
    auto step = window.spare_for(task, number);
    step->open_pulled(number, number * kRows);
    step->set_place(testing::rows_at(0, kRows));
    return step;
  }
};

TEST_F(StreamWindowTest, OneThreadPullsAndOthersComputeThePublishedSteps) {
  Window& window = this->window({.threads = 2, .end = kEndless, .stream = true});
  Task pulling;
  ASSERT_TRUE(window.begin_task(pulling));
  EXPECT_EQ(pulling.kind, Task::Kind::pull);
  Task other;
  EXPECT_FALSE(window.begin_task(other)) << "one thread pulls, and nothing is published";
  auto step = pulled(window, pulling, 0);
  begin(2);
  EXPECT_EQ(window.publish(std::move(step)), kRows);
  EXPECT_TRUE(window.pull_on());
  ASSERT_TRUE(window.begin_task(other));
  EXPECT_EQ(other.kind, Task::Kind::rows);
  EXPECT_EQ(other.first_step, 0U);
  finish(window, other);
  EXPECT_EQ(take(), Numbers{0});
  window.end_task(pulling, kRows);
}

TEST_F(StreamWindowTest, NothingIsPulledBeyondTheWindowOrTheEnd) {
  Window& window = this->window({.threads = 1, .end = kEndless, .stream = true});
  Task pulling;
  ASSERT_TRUE(window.begin_task(pulling));
  begin(1);
  for (std::uint64_t number = 0; number < 4; ++number) {
    EXPECT_TRUE(window.pull_on()) << number;
    window.publish(pulled(window, pulling, number));
  }
  EXPECT_FALSE(window.pull_on()) << "four steps were requested";
  window.end_task(pulling, 0);
  Task task;
  for (int i = 0; i < 4; ++i) {
    Task each;
    ASSERT_TRUE(window.begin_task(each));
    finish(window, each);
  }
  EXPECT_EQ(take().size(), 4U);
  EXPECT_EQ(window.look(Window::Awaited::step), Window::Found::nothing);
  window.end_stream();
  EXPECT_EQ(window.look(Window::Awaited::step), Window::Found::end);
  EXPECT_FALSE(window.begin_task(task));
}

TEST_F(StreamWindowTest, HelpingThePullerComesFirst) {
  bool wants = true;
  Window& window = this->window(
      {.threads = 2, .end = kEndless, .stream = true, .wants_help = [&] { return wants; }});
  Task task;
  ASSERT_TRUE(window.begin_task(task));
  EXPECT_EQ(task.kind, Task::Kind::help);
  window.end_task(task, 0);
  wants = false;
  Task other;
  ASSERT_TRUE(window.begin_task(other));
  EXPECT_EQ(other.kind, Task::Kind::pull);
  window.end_task(other, 0);
}

}  // namespace
}  // namespace penstock
