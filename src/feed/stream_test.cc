// Streams through a loader: deliveries, errors, and the end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "base/fault.h"
#include "penstock/io.h"
#include "penstock/penstock.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Values = std::vector<std::int64_t>;

/// A generator of `count` numbers that throws at `bad` while `broken`.
struct Source {
  std::int64_t count = 0;
  std::int64_t bad = -1;
  std::shared_ptr<std::atomic<bool>> broken = std::make_shared<std::atomic<bool>>(true);
  std::shared_ptr<std::atomic<int>> starts = std::make_shared<std::atomic<int>>(0);
  std::shared_ptr<std::atomic<int>> calls = std::make_shared<std::atomic<int>>(0);

  [[nodiscard]] Dataset dataset() const {
    return Dataset::from_generator(
        [me = *this] {
          ++*me.starts;
          return [me, i = std::int64_t{0}]() mutable -> std::optional<std::int64_t> {
            ++*me.calls;
            if (i == me.bad && *me.broken) throw std::runtime_error("no more paper");
            if (i == me.count) return std::nullopt;
            return i++;
          };
        },
        {.name = "printer"});
  }
};

Dataset generated(std::int64_t count) {
  return Source{count}.dataset();
}

Values values_of(Loader& loader) {
  Values values;
  while (auto batch = loader.next()) {
    const auto rows = batch->values<std::int64_t>();
    values.insert(values.end(), rows.begin(), rows.end());
  }
  return values;
}

/// The error of type E that `body` throws.
template <typename E>
E error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const E& error) {
    return error;
  }
  ADD_FAILURE() << "no error of this type";
  return E("none");
}

TEST(StreamTest, EveryEpochPullsTheGeneratorAgain) {
  const Source source{10};
  Loader loader(source.dataset().batch(4), {.threads = 2});
  EXPECT_EQ(values_of(loader), (Values{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(values_of(loader).size(), 10U);
  EXPECT_EQ(loader.epoch(), 2U);
  EXPECT_EQ(*source.starts, 2);
  EXPECT_EQ(*source.calls, 22);
}

TEST(StreamTest, AGeneratorReceivesItsEpochAndRound) {
  const Dataset dataset = Dataset::from_generator([](GeneratorStart start) {
    return [start, done = false]() mutable -> std::optional<std::int64_t> {
      if (std::exchange(done, true)) return std::nullopt;
      return static_cast<std::int64_t>(10 * start.epoch + start.round);
    };
  });
  Loader loader(dataset.repeat(3).batch(2), {.threads = 2});
  EXPECT_EQ(values_of(loader), (Values{0, 1, 2}));
  EXPECT_EQ(values_of(loader), (Values{10, 11, 12}));
}

TEST(StreamTest, ElementsAreNumbersTuplesStructsOrSamples) {
  struct Point {
    float x;
    std::int32_t label;
    static constexpr auto fields() {
      return std::tuple(field("x", &Point::x), field("label", &Point::label));
    }
  };
  const auto once = [](auto value) {
    return Dataset::from_generator([value] {
      return [value, done = false]() mutable -> std::optional<decltype(value)> {
        if (std::exchange(done, true)) return std::nullopt;
        return value;
      };
    });
  };
  Loader points(once(Point{0.5F, 7}).batch(1), {.threads = 1});
  const auto point = points.next();
  EXPECT_THAT(point->values<float>("x"), ElementsAre(0.5F));
  EXPECT_THAT(point->values<std::int32_t>("label"), ElementsAre(7));
  Loader pairs(once(std::tuple(1.5, std::uint8_t{3})).batch(1), {.threads = 1});
  EXPECT_THAT(pairs.next()->values<std::uint8_t>("1"), ElementsAre(3));
  Loader samples(once(Sample::dict({{"t", Tensor::bytes("abc")}})).batch(1), {.threads = 1});
  EXPECT_EQ(samples.next()->row(0)["t"].text(), "abc");
}

// Generators that fail

TEST(StreamTest, AGeneratorThatThrowsNamesItsElementAfterAllBatchesBefore) {
  for (unsigned threads = 0; threads <= 2; ++threads) {
    for (const std::int64_t bad : {0, 1, 6, 7, 10, 11}) {
      const Source source{11, bad};
      Loader loader(source.dataset().batch(3).with_options({.name = "train"}),
                    {.threads = threads});
      loader.set_epoch(2);
      for (std::int64_t step = 0; step < bad / 3; ++step) EXPECT_EQ(loader.next()->rows(), 3U);
      for (int tries = 0; tries < 2; ++tries) {
        const auto error = error_of<SampleError>([&] { loader.next(); });
        EXPECT_EQ(error.where().sample, (SampleKey{0, static_cast<std::uint64_t>(bad)}));
        EXPECT_THAT(error.where().op, HasSubstr("from_generator"));
        EXPECT_THAT(error.where().op, HasSubstr("printer"));
        EXPECT_EQ(error.where().dataset, "train");
        EXPECT_EQ(error.where().epoch, 2U);
        EXPECT_EQ(error.where().step, static_cast<std::uint64_t>(bad / 3));
        EXPECT_EQ(error.where().position, static_cast<std::uint64_t>(bad / 3 * 3));
        EXPECT_THAT(error.what(), HasSubstr("no more paper"));
        EXPECT_THROW(std::rethrow_exception(error.cause()), std::runtime_error);
      }
      *source.broken = false;
      EXPECT_EQ(values_of(loader).size(), static_cast<std::size_t>(11 - bad / 3 * 3))
          << "fixed, it continues";
    }
  }
}

TEST(StreamTest, AFactoryThatThrowsIsTheFirstElementsFailure) {
  const Dataset dataset = Dataset::from_generator(
      []() -> std::function<std::optional<std::int64_t>()> { throw std::runtime_error("no key"); },
      {.name = "vault"});
  Loader loader(dataset.batch(2), {.threads = 2});
  const auto error = error_of<SampleError>([&] { loader.next(); });
  EXPECT_EQ(error.where().sample, (SampleKey{0, 0}));
  EXPECT_THAT(error.what(), HasSubstr("vault"));
}

Dataset changing(const Sample& other, const SourceOptions& options) {
  return Dataset::from_generator(
      [other] {
        return [other, i = 0]() mutable -> std::optional<Sample> {
          if (i == 9) return std::nullopt;
          if (i++ == 5) return other;
          return Sample::dict({{"x", Tensor::of(std::vector<float>{1, 2})}});
        };
      },
      options);
}

TEST(StreamTest, AnElementOfAnotherDtypeOrRankIsNamedWithBothSpecs) {
  const std::vector<float> values{1, 2};
  const Sample column = Sample::dict({{"x", Tensor::of(std::span<const float>(values), {2, 1})}});
  const Sample wider = Sample::dict({{"x", Tensor::of(std::vector<double>{1, 2})}});
  const SourceOptions declared{.spec = ElementSpec::dict({{"x", Dtype::f32, {2}}})};
  for (unsigned threads = 0; threads <= 2; ++threads) {
    for (const auto& [other, text] : {std::pair(column, "f32[2, 1]"), std::pair(wider, "f64[2]")}) {
      for (const SourceOptions& options : {SourceOptions{}, declared}) {
        Loader loader(changing(other, options).batch(2), {.threads = threads});
        EXPECT_TRUE(loader.next());
        EXPECT_TRUE(loader.next());
        const auto error = error_of<SampleError>([&] { loader.next(); });
        EXPECT_EQ(error.where().sample, (SampleKey{0, 5}));
        EXPECT_EQ(error.where().step, 2U);
        EXPECT_THAT(error.what(), HasSubstr("\"x\""));
        EXPECT_THAT(error.what(), HasSubstr("f32[2]"));
        EXPECT_THAT(error.what(), HasSubstr(text));
      }
    }
  }
}

TEST(StreamTest, AGeneratorThatNeverYieldsHasNoStepsAndNoError) {
  for (unsigned threads = 0; threads <= 2; ++threads) {
    Loader loader(generated(0).batch(4), {.threads = threads});
    EXPECT_TRUE(loader.at_end());
    EXPECT_EQ(loader.next(), std::nullopt);
    EXPECT_EQ(loader.next(), std::nullopt);
    EXPECT_EQ(loader.epoch(), 2U);
    Loader filtered(generated(9).filter([](std::int64_t) { return false; }).repeat().batch(2),
                    {.threads = threads});
    EXPECT_EQ(filtered.next(), std::nullopt);
  }
}

TEST(StreamTest, AStreamHasNoSizeAndSaysWhy) {
  const Dataset forever = Dataset::from_generator(
      [] { return [i = std::int64_t{0}]() mutable { return std::optional(i++); }; });
  Loader loader(forever.batch(2), {.threads = 2});
  const auto error = error_of<ConfigError>([&] { (void)loader.size(); });
  EXPECT_THAT(error.what(), HasSubstr("stream"));
  EXPECT_THAT(error.remedy(), HasSubstr("take"));
  for (int i = 0; i < 50; ++i) ASSERT_EQ(loader.next()->values<std::int64_t>()[0], 2 * i);
}

// Cursors

/// A generator with a cursor controlled by the test.
struct Cursored {
  std::int64_t count = 0;
  std::int64_t restore_adds = 0;
  std::size_t text_bytes = 1;
  std::int64_t next = 0;
  std::optional<std::int64_t> operator()() {
    if (next >= count) return std::nullopt;
    return next++;
  }
  [[nodiscard]] std::string save() const {
    std::string text = std::to_string(next) + " ";
    text.resize(std::max(text.size(), text_bytes), '\xff');
    return text;
  }
  void restore(const std::string& text) {
    next = std::stoll(text) + restore_adds;
    if (next == 404) throw std::runtime_error("not found");
  }
};

Loader with_cursor(const Cursored& generator, unsigned threads = 2) {
  return Loader(Dataset::from_generator([generator] { return generator; }, {.name = "c"}).batch(2),
                {.threads = threads});
}

State state_after(Loader loader, int steps) {
  for (int i = 0; i < steps; ++i) loader.next();
  return State::parse(loader.state().to_json());
}

TEST(StreamTest, AWrongCursorIsDetectedByTheNextElement) {
  for (unsigned threads = 0; threads <= 2; ++threads) {
    for (const std::int64_t adds : {-1, 1, 100}) {
      Loader liar = with_cursor({.count = 20, .restore_adds = adds}, threads);
      liar.restore(state_after(with_cursor({.count = 20}), 3));
      for (int tries = 0; tries < 3; ++tries) {
        const auto error = error_of<StateError>([&] { liar.next(); });
        EXPECT_THAT(error.what(), HasSubstr(adds == 100 ? "no element" : "another element"));
        EXPECT_THAT(error.remedy(), HasSubstr("restore()"));
      }
      liar.set_epoch(0);
      EXPECT_EQ(liar.next()->values<std::int64_t>()[0], 0);
    }
  }
}

TEST(StreamTest, AGeneratorThatIsShorterThanTheStateIsRejected) {
  Loader cursor = with_cursor({.count = 4});
  cursor.restore(state_after(with_cursor({.count = 20}), 3));
  EXPECT_THROW(cursor.next(), StateError);
  Loader plain(generated(4).batch(2), {.threads = 2});
  plain.restore(state_after(Loader(generated(20).batch(2), {.threads = 2}), 3));
  for (int tries = 0; tries < 2; ++tries) {
    const auto error = error_of<Error>([&] { plain.next(); });
    EXPECT_THAT(error.what(), HasSubstr("4 elements"));
    EXPECT_THAT(error.what(), HasSubstr("after 6"));
    EXPECT_THAT(error.what(), HasSubstr("printer"));
  }
}

TEST(StreamTest, ARestoreThatThrowsNamesItsGenerator) {
  Loader loader = with_cursor({.count = 1000, .restore_adds = 400});
  loader.restore(state_after(with_cursor({.count = 1000}), 2));
  const auto error = error_of<SampleError>([&] { loader.next(); });
  EXPECT_THAT(error.what(), HasSubstr("not found"));
  EXPECT_THAT(error.where().op, HasSubstr("from_generator"));
}

TEST(StreamTest, ACursorMayHoldAnyBytesUpTo64KilobytesOfText) {
  const auto loader = [](std::size_t bytes) {
    return with_cursor({.count = 20, .text_bytes = bytes});
  };
  Loader kept = loader(30000);
  kept.restore(state_after(loader(30000), 3));
  EXPECT_EQ(kept.next()->values<std::int64_t>()[0], 6);
  Loader large = loader(65537);
  EXPECT_NO_THROW((void)large.state()) << "at the start there is nothing to save";
  large.next();
  const auto error = error_of<StateError>([&] { (void)large.state(); });
  EXPECT_THAT(error.what(), HasSubstr("65536"));
  EXPECT_THAT(error.remedy(), HasSubstr("save()"));
  EXPECT_EQ(values_of(large).size(), 18U) << "the loader stays usable";
}

TEST(StreamTest, AStateIsAtMost64KilobytesOfText) {
  const State state = state_after(with_cursor({.count = 20, .text_bytes = 30000}), 3);
  EXPECT_LE(state.to_json().size(), 64U * 1024);
}

// States

TEST(StreamTest, AStateWithATruncatedOrGarbledStreamIsRejected) {
  const std::string text = state_after(with_cursor({.count = 20}), 3).to_json();
  const std::size_t begin = text.find("\"stream\"");
  ASSERT_NE(begin, std::string::npos);
  for (std::size_t at = begin; at < text.size(); ++at) {
    EXPECT_THROW(State::parse(text.substr(0, at)), StateError) << at;
    std::string garbled = text;
    garbled[at] = garbled[at] == '1' ? '2' : '1';
    EXPECT_THROW(State::parse(garbled), StateError) << at;
  }
}

TEST(StreamTest, AStateOfAnotherStreamIsRejected) {
  const State good = state_after(with_cursor({.count = 20}), 3);
  const auto refused = [&](const std::function<void(State&)>& change) {
    State bad = good;
    change(bad);
    Loader loader = with_cursor({.count = 20});
    EXPECT_THROW(
        {
          loader.restore(bad);
          loader.next();
        },
        Error);
  };
  refused([](State& state) { state.stream.reset(); });
  refused([](State& state) { state.stream->numbers.pop_back(); });
  refused([](State& state) { state.stream->numbers.clear(); });
  refused([](State& state) { state.stream->texts.clear(); });
  refused([](State& state) { state.stream->texts[0] = "no number"; });
  refused([](State& state) { state.stream->next = "0123456789abcdef"; });
  refused([](State& state) { state.counts_samples = false; });
  refused([](State& state) { state.step = 0; });
  refused([](State& state) { state.digests.order = "another"; });
}

TEST(StreamTest, AStateResumesWithAnotherBatchSizeAndOtherShares) {
  const auto dataset = [](std::int64_t size) {
    return generated(40).filter([](std::int64_t x) { return x % 3 != 0; }).batch(size);
  };
  const State state = state_after(Loader(dataset(4), {.threads = 2}), 3);
  EXPECT_EQ(state.position, 12U);
  Loader other(dataset(5), {.shares = {{2, 0, 2}}, .threads = 1});
  other.restore(state);
  const auto step = other.next_step();
  EXPECT_EQ(step->at(0).values<std::int64_t>()[0], 19);
  EXPECT_EQ(step->at(0).rows() + step->at(1).rows(), 5U);
}

// Verbs that a stream does not support

TEST(StreamTest, VerbsThatAStreamDoesNotSupportThrowWithARemedy) {
  const auto refused = [](const std::function<void()>& make, const std::string& says,
                          const std::string& remedy) {
    const auto error = error_of<ConfigError>(make);
    EXPECT_THAT(error.what(), HasSubstr(says));
    EXPECT_THAT(error.remedy(), HasSubstr(remedy));
  };
  const Dataset stream = generated(9);
  refused([&] { (void)stream.shuffle({.window = 0}); }, "window must be positive",
          "number of elements");
  refused([&] { (void)Dataset::range(9).shuffle({.window = 0}); }, "window must be positive",
          "number");
  refused([&] { (void)stream.shuffle(); }, "shuffle", "window");
  refused([&] { (void)stream.batch(2).shuffle(); }, "shuffle", "window");
  refused([&] { (void)stream.filter([](std::int64_t) { return true; }, {.mask = true}); }, "filter",
          "mask");
  refused([&] { (void)stream.select([](std::int64_t) { return true; }); }, "select", "filter");
  EXPECT_THROW(
      (void)stream.interleave([](std::int64_t) { return Dataset::range(1); }, {.cycle = 0}),
      ConfigError);
  EXPECT_THROW(
      (void)stream.interleave([](std::int64_t) { return Dataset::range(1); }, {.block = 0}),
      ConfigError);
  for (const Tail tail : {Tail::even, Tail::wrap, Tail::strict}) {
    const auto both = [&](const std::function<void()>& make) {
      const auto error = error_of<ConfigError>(make);
      for (const char* const word : {"short", "pad", "drop"})
        EXPECT_THAT(error.what(), HasSubstr(word));
    };
    both([&] { const Loader loader(stream.batch(2, {.tail = tail})); });
    both([&] { const Loader loader(stream.batch(2), {.tail = tail}); });
    both([&] {
      const Loader loader(stream.batch(2).concatenate(Dataset::range(4).batch(2, {.tail = tail})));
    });
  }
}

// Functions that fail

TEST(StreamTest, APredicateThatThrowsNamesItsElement) {
  for (unsigned threads = 0; threads <= 2; ++threads) {
    for (const bool until : {false, true}) {
      const auto undecided = [](std::int64_t x) {
        if (x == 7) throw std::runtime_error("undecided");
        return true;
      };
      const Dataset in = generated(12);
      const Dataset judged = until ? in.take_while(undecided, {.name = "judge"})
                                   : in.filter(undecided, {.name = "judge"});
      Loader loader(judged.batch(3), {.threads = threads});
      EXPECT_TRUE(loader.next());
      EXPECT_TRUE(loader.next());
      const auto error = error_of<SampleError>([&] { loader.next(); });
      EXPECT_EQ(error.where().sample, (SampleKey{0, 7}));
      EXPECT_THAT(error.where().op, HasSubstr(until ? "take_while" : "filter"));
      EXPECT_THAT(error.where().op, HasSubstr("judge"));
      EXPECT_EQ(error.where().epoch, 0U);
      EXPECT_EQ(error.where().step, 2U);
      EXPECT_EQ(error.where().position, 6U);
      EXPECT_THAT(error.what(), HasSubstr("undecided"));
    }
  }
}

TEST(StreamTest, MoreSkippedElementsThanAllowedNameTheFirstTenAndTheFile) {
  for (unsigned threads = 0; threads <= 2; ++threads) {
    const std::string file = ::testing::TempDir() + "/stream_ledger.jsonl";
    std::remove(file.c_str());
    const Dataset dataset = generated(100)
                                .map(
                                    [](std::int64_t x) {
                                      if (x % 3 == 0) throw std::runtime_error("torn");
                                      return x;
                                    },
                                    {.name = "read"})
                                .filter([](std::int64_t) { return true; })
                                .batch(5);
    Loader loader(dataset, {.threads = threads, .on_error = OnError::skip, .ledger_file = file});
    const auto error = error_of<SampleError>([&] { values_of(loader); });
    for (int i = 0; i < 10; ++i)
      EXPECT_THAT(error.what(), HasSubstr("sample " + std::to_string(3 * i) + " of"));
    EXPECT_THAT(error.what(), Not(HasSubstr("sample 30 of")));
    EXPECT_THAT(error.what(), HasSubstr(file));
    const auto text = Io::real().read_text(file, 1 << 20);
    ASSERT_TRUE(text);
    EXPECT_GE(std::ranges::count(*text, '\n'), 11);
    Loader patient(dataset, {.threads = threads, .on_error = OnError::skip, .skip_limit = 1000});
    EXPECT_EQ(values_of(patient).size(), 66U);
    EXPECT_EQ(patient.ledger().count(), 34U);
    EXPECT_EQ(patient.ledger().entries().back().sample.number, 99U) << "after the last batch";
  }
}

TEST(StreamTest, EveryAllocationThatFailsIsATypedErrorAndTheLoaderGoesOn) {
#ifndef PENSTOCK_FAULTS
  FAIL() << "this test needs a build with fault points";
#endif
  for (std::uint64_t nth = 1;; ++nth) {
    fault::disarm_all();
    Loader loader(generated(40).batch(4), {.threads = 2});
    fault::arm("slab.allocate", nth);
    Values values;
    bool failed = false;
    while (true) {
      try {
        const auto batch = loader.next();
        if (!batch) break;
        const auto rows = batch->values<std::int64_t>();
        values.insert(values.end(), rows.begin(), rows.end());
      } catch (const ResourceError&) {
        failed = true;
      }
    }
    EXPECT_EQ(values.size(), 40U);
    EXPECT_TRUE(std::ranges::is_sorted(values));
    if (!failed) break;
  }
  fault::disarm_all();
}

TEST(StreamTest, SharesTogetherHoldTheStep) {
  const Dataset dataset = generated(19).filter([](std::int64_t x) { return x != 4; }).batch(10);
  Values all;
  for (std::uint32_t share = 0; share < 4; ++share) {
    Loader loader(dataset, {.shares = {{4, share, 1}}, .threads = 2});
    EXPECT_EQ(loader.next()->rows(), share < 2 ? 3U : 2U);
    const auto last = loader.next();
    EXPECT_EQ(last->rows(), 2U);
    EXPECT_EQ(last->global_valid(), 8U);
    const auto rows = last->values<std::int64_t>();
    all.insert(all.end(), rows.begin(), rows.end());
  }
  EXPECT_THAT(all, ElementsAre(11, 12, 13, 14, 15, 16, 17, 18));
}

}  // namespace
}  // namespace penstock
