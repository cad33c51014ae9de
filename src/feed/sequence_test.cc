#include "penstock/sequence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

#include "base/mutex.h"
#include "base/pool.h"
#include "penstock/loader.h"
#include "penstock/report_sink.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Batches of the numbers from 0 on; batch i has `sizes[i]` of them.
class Numbers : public Sequence {
 public:
  explicit Numbers(std::vector<std::int64_t> sizes)
      : sizes_(std::move(sizes)), calls(sizes_.size()) {}
  [[nodiscard]] std::uint64_t size() const override { return sizes_.size(); }
  Sample get(std::uint64_t index) override {
    ++calls[index];
    std::int64_t first = 0;
    for (std::uint64_t i = 0; i < index; ++i) first += sizes_[i];
    std::vector<std::int64_t> values;
    for (std::int64_t i = 0; i < sizes_[index]; ++i) values.push_back(first + i);
    return Tensor::of(values);
  }

 private:
  std::vector<std::int64_t> sizes_;

 public:
  std::vector<std::atomic<int>> calls;
};

std::vector<std::int64_t> rows_of(const std::vector<Batch>& shares) {
  std::vector<std::int64_t> rows;
  for (const Batch& share : shares)
    for (const std::int64_t value : share.values<std::int64_t>()) rows.push_back(value);
  return rows;
}

std::vector<std::int64_t> numbers_to(std::int64_t end) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < end; ++i) numbers.push_back(i);
  return numbers;
}

class Reports {
 public:
  Reports() {
    before_ = set_report_sink([this](const std::string& text) {
      Lock lock(mutex_);
      texts_.push_back(text);
    });
  }
  ~Reports() { set_report_sink(before_); }
  Reports(const Reports&) = delete;
  Reports& operator=(const Reports&) = delete;
  std::vector<std::string> texts() {
    Lock lock(mutex_);
    return texts_;
  }

 private:
  ReportSink before_;
  Mutex mutex_;
  std::vector<std::string> texts_;
};

TEST(SequenceTest, UnevenBatchesAreCutForAnyNumberOfSharesAndEachIndexIsRequestedOnce) {
  for (const std::uint32_t shares : {1U, 2U, 3U, 5U}) {
    for (const unsigned threads : {0U, 2U}) {
      const auto sequence =
          std::make_shared<Numbers>(std::vector<std::int64_t>{3, 3, 4, 1, 3, 0, 2});
      Loader loader(Dataset::from_sequence(sequence, {.check = false}),
                    {.shares = {{shares, 0, shares}}, .threads = threads});
      EXPECT_EQ(loader.size(), 7U);
      std::vector<std::int64_t> all;
      std::uint64_t steps = 0;
      while (const auto step = loader.next_step()) {
        ++steps;
        double scale = 0;
        for (const Batch& share : *step) scale += share.loss_scale() / shares;
        const auto rows = rows_of(*step);
        EXPECT_DOUBLE_EQ(scale, rows.empty() ? 0.0 : 1.0);
        all.insert(all.end(), rows.begin(), rows.end());
      }
      EXPECT_EQ(steps, 7U);
      EXPECT_EQ(all, numbers_to(16));
      for (const auto& calls : sequence->calls) EXPECT_EQ(calls, 1);
    }
  }
}

TEST(SequenceTest, MapsTakesRepeatsAndStatesWorkOnItsSteps) {
  const auto dataset =
      Dataset::from_sequence(std::make_shared<Numbers>(std::vector<std::int64_t>{2, 3, 1, 2}),
                             {.spec = ElementSpec::single(Dtype::i64), .check = false});
  const auto twice =
      dataset.map([](std::int64_t x) { return 2 * x; }).skip(1).repeat(2).shuffle({.seed = 5});
  Loader whole(twice, {.threads = 2});
  std::vector<std::vector<std::int64_t>> steps;
  while (const auto step = whole.next_step()) steps.push_back(rows_of(*step));
  ASSERT_EQ(steps.size(), 6U);
  for (std::size_t at = 0; at < steps.size(); ++at) {
    Loader first(twice, {.threads = 0});
    for (std::size_t i = 0; i < at; ++i) (void)first.next();
    Loader second(twice, {.threads = 2});
    second.restore(State::parse(first.state().to_json()));
    for (std::size_t i = at; i < steps.size(); ++i)
      EXPECT_EQ(rows_of(*second.next_step()), steps[i]);
    EXPECT_EQ(rows_of({second.step(at)}), steps[at]);
  }
}

TEST(SequenceTest, RowsCanBeUnbatchedAndBatchedAgain) {
  const auto rows =
      Dataset::from_sequence(std::make_shared<Numbers>(std::vector<std::int64_t>{2, 3, 0, 4}),
                             {.check = false})
          .unbatch();
  EXPECT_TRUE(rows.streamed());
  Loader loader(rows.batch(4), {.threads = 2});
  EXPECT_EQ(rows_of(*loader.next_step()), (std::vector<std::int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(rows_of(*loader.next_step()), (std::vector<std::int64_t>{4, 5, 6, 7}));
  EXPECT_EQ(rows_of(*loader.next_step()), (std::vector<std::int64_t>{8}));
  EXPECT_FALSE(loader.next_step());
}

TEST(SequenceTest, BatchingASequenceIsRejected) {
  try {
    (void)Dataset::from_sequence(std::make_shared<Numbers>(std::vector<std::int64_t>{2})).batch(3);
    FAIL() << "batches were batched";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("already batches"), HasSubstr("unbatch()")));
  }
}

/// Throws, or returns another batch, at one index.
class Odd : public Numbers {
 public:
  using Answer = std::function<Sample()>;
  Odd(std::vector<std::int64_t> sizes, std::uint64_t at, Answer answer)
      : Numbers(std::move(sizes)), at_(at), answer_(std::move(answer)) {}
  Sample get(std::uint64_t index) override {
    return index == at_ ? answer_() : Numbers::get(index);
  }

 private:
  std::uint64_t at_;
  Answer answer_;
};

std::string error_at(const std::shared_ptr<Sequence>& sequence, std::uint64_t steps_before) {
  Loader loader(Dataset::from_sequence(sequence), {.threads = 2});
  std::uint64_t steps = 0;
  try {
    while (loader.next()) ++steps;
  } catch (const SampleError& error) {
    EXPECT_EQ(steps, steps_before);
    return error.what();
  }
  return "nothing was thrown";
}

TEST(SequenceTest, AFailedGetNamesItsIndexAndStep) {
  const auto sequence =
      std::make_shared<Odd>(std::vector<std::int64_t>{2, 2, 2, 2, 2}, 3,
                            []() -> Sample { throw std::runtime_error("disk on fire"); });
  EXPECT_THAT(error_at(sequence, 3),
              AllOf(HasSubstr("get(3)"), HasSubstr("disk on fire"), HasSubstr("step 3")));
}

TEST(SequenceTest, ABatchOfAnotherWidthNamesItsIndexAndBothSpecs) {
  const auto sequence = std::make_shared<Odd>(std::vector<std::int64_t>{2, 2, 2}, 2, [] {
    return Sample(Tensor::of(std::span<const std::int64_t>(std::vector<std::int64_t>(6)), {2, 3}));
  });
  EXPECT_THAT(error_at(sequence, 2),
              AllOf(HasSubstr("get(2)"), HasSubstr("i64[3]"), HasSubstr("i64[]")));
}

TEST(SequenceTest, FieldsWithDifferentNumbersOfRowsAreRejected) {
  const auto sequence = std::make_shared<Odd>(std::vector<std::int64_t>{2}, 0, [] {
    return Sample::dict(
        {{"x", Tensor::of(std::vector<float>(3))}, {"y", Tensor::of(std::vector<float>(2))}});
  });
  EXPECT_THAT(error_at(sequence, 0), AllOf(HasSubstr("get(0)"), HasSubstr("\"y\"")));
}

/// Records its calls.
class Hooked : public Numbers {
 public:
  using Numbers::Numbers;
  void on_epoch_begin() override { note("begin"); }
  void on_epoch_end() override { note("end"); }
  Sample get(std::uint64_t index) override {
    note(std::to_string(index));
    return Numbers::get(index);
  }
  std::vector<std::string> notes;

 private:
  void note(std::string text) {
    Lock lock(mutex_);
    notes.push_back(std::move(text));
  }
  Mutex mutex_;
};

TEST(SequenceTest, HooksAreCalledBetweenPasses) {
  const auto sequence = std::make_shared<Hooked>(std::vector<std::int64_t>{1, 1});
  {
    Loader loader(Dataset::from_sequence(sequence, {.check = false}), {.threads = 0});
    for (int epoch = 0; epoch < 2; ++epoch)
      while (loader.next()) {
      }
  }
  EXPECT_THAT(sequence->notes, ElementsAre("begin", "0", "1", "end", "begin", "0", "1", "end"));
}

TEST(SequenceTest, ResumingInALaterEpochCallsTheEarlierHooksFirst) {
  const auto dataset = [](const std::shared_ptr<Hooked>& sequence) {
    return Dataset::from_sequence(sequence, {.name = "hooked", .check = false});
  };
  State state;
  {
    Loader loader(dataset(std::make_shared<Hooked>(std::vector<std::int64_t>{1, 1})),
                  {.threads = 0});
    for (int i = 0; i < 7; ++i) (void)loader.next();  // two epochs and one step
    state = loader.state();
  }
  const auto fresh = std::make_shared<Hooked>(std::vector<std::int64_t>{1, 1});
  {
    Loader loader(dataset(fresh), {.threads = 0});
    loader.restore(state);
    EXPECT_EQ(loader.next()->epoch(), 2U);
  }
  EXPECT_THAT(fresh->notes, ElementsAre("begin", "end", "begin", "end", "begin", "1", "end"));
}

/// Each get returns the next entry of its own list, whatever the index.
class Popping : public Sequence {
 public:
  [[nodiscard]] std::uint64_t size() const override { return 4; }
  Sample get(std::uint64_t) override {
    if (next_ == 4) throw std::runtime_error("pop from empty list");
    return Tensor::of(std::vector<std::int64_t>{next_++});
  }

 private:
  std::int64_t next_ = 0;
};

TEST(SequenceTest, AnImpureSequenceIsReportedOnceAtTheEnd) {
  Reports reports;
  {
    Loader loader(Dataset::from_sequence(std::make_shared<Popping>()), {.threads = 0});
    std::vector<std::int64_t> seen;
    while (const auto batch = loader.next()) seen.push_back(batch->values<std::int64_t>()[0]);
    EXPECT_EQ(seen, numbers_to(4));
    EXPECT_THAT(reports.texts(), IsEmpty());
  }
  EXPECT_THAT(reports.texts(),
              ElementsAre(AllOf(HasSubstr("get(0) failed"), HasSubstr("pop from empty list"),
                                HasSubstr("from_generator"))));
}

TEST(SequenceTest, PureMakesItAnErrorOfStopAndCheckFalseDisablesIt) {
  Reports reports;
  Loader strict(Dataset::from_sequence(std::make_shared<Popping>(), {.pure = true}),
                {.threads = 0});
  (void)strict.next();
  EXPECT_THROW(strict.stop(), ConfigError);
  {
    Loader quiet(Dataset::from_sequence(std::make_shared<Popping>(), {.check = false}),
                 {.threads = 0});
    (void)quiet.next();
  }
  EXPECT_THAT(reports.texts(), IsEmpty());
}

/// Returns only when two calls are inside at the same time.
class Meeting : public Numbers {
 public:
  using Numbers::Numbers;
  Sample get(std::uint64_t index) override {
    if (index > 0) {  // the first one, which shows the fields, runs alone
      Lock lock(mutex_);
      ++inside_;
      met_.notify_all();
      while (inside_ % 2 != 0 && left_ == 0) met_.wait(mutex_);
      left_ = 1;
    }
    return Numbers::get(index);
  }

 private:
  Mutex mutex_;
  Condition met_;
  int inside_ = 0;
  int left_ = 0;
};

TEST(SequenceTest, SeveralThreadsCallGetConcurrently) {
  Pool::set_shared_threads(2);
  const auto sequence = std::make_shared<Meeting>(std::vector<std::int64_t>{1, 1, 1, 1});
  Loader loader(Dataset::from_sequence(sequence, {.check = false}), {.threads = 2});
  std::int64_t steps = 0;
  while (const auto batch = loader.next()) EXPECT_EQ(batch->values<std::int64_t>()[0], steps++);
  EXPECT_EQ(steps, 4);
  Pool::set_shared_threads(0);
}

}  // namespace
}  // namespace penstock
