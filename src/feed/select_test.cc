// Samples chosen from indexed data: select, split, resolve.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "penstock/penstock.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Numbers = std::vector<std::uint64_t>;

const auto kEven = [](std::int64_t x) { return x % 2 == 0; };

Numbers ids_of(const Dataset& dataset, std::uint64_t epoch = 0) {
  Loader loader(dataset.batch(7), {.threads = 2});
  loader.set_epoch(epoch);
  Numbers ids;
  while (auto batch = loader.next())
    ids.insert(ids.end(), batch->sample_id().begin(), batch->sample_id().end());
  return ids;
}

/// Data that counts its reads.
struct Read {
  std::shared_ptr<std::atomic<int>> calls = std::make_shared<std::atomic<int>>(0);
  [[nodiscard]] Dataset dataset(std::uint64_t size) const {
    return Dataset::from_index(size, [calls = calls](std::uint64_t i) {
      ++*calls;
      return static_cast<std::int64_t>(i);
    });
  }
};

TEST(SelectTest, SelectedSamplesStayIndexedAndKeepTheirIds) {
  const Dataset chosen = Dataset::range(10, 20).select(kEven);
  EXPECT_FALSE(chosen.streamed());
  EXPECT_TRUE(chosen.cardinality().is_unknown()) << "before it was resolved";
  EXPECT_EQ(chosen.resolve().cardinality(), Cardinality::of(5));
  EXPECT_THAT(ids_of(chosen), ElementsAre(0, 2, 4, 6, 8));
  const Loader loader(chosen.batch(2));
  EXPECT_EQ(loader.size(), 3U);
}

TEST(SelectTest, ASelectionCanBeShuffledAndEnumerated) {
  const Dataset shuffled = Dataset::range(100).select(kEven).shuffle({.seed = 1});
  const Numbers first = ids_of(shuffled, 0);
  const Numbers second = ids_of(shuffled, 1);
  EXPECT_NE(first, second);
  EXPECT_EQ(std::set(first.begin(), first.end()).size(), 50U);
  EXPECT_EQ(std::set(first.begin(), first.end()), std::set(second.begin(), second.end()));
  EXPECT_EQ(Dataset::range(100).select(kEven).sample(3).tensor().item<std::int64_t>(), 6);
}

TEST(SelectTest, ThePredicateRunsOnceForAllCopiesAndLoaders) {
  std::atomic<int> calls{0};
  const Dataset chosen = Dataset::range(3000).select([&calls](std::int64_t x) {
    ++calls;
    return x < 5;
  });
  EXPECT_EQ(calls, 0) << "not before the result is needed";
  const Dataset copy = chosen;
  EXPECT_EQ(ids_of(chosen).size(), 5U);
  EXPECT_EQ(ids_of(copy.repeat(2)).size(), 10U);
  EXPECT_EQ(ids_of(chosen.resolve().shuffle()).size(), 5U);
  EXPECT_EQ(ids_of(Dataset::zip({chosen, copy.skip(1)})).size(), 4U);
  EXPECT_EQ(calls, 3000);
}

TEST(SelectTest, AnySelectionIsFound) {
  for (const std::int64_t size : {0, 1, 63, 64, 65, 1023, 1024, 1025, 5000}) {
    EXPECT_EQ(ids_of(Dataset::range(size).select([](std::int64_t) { return true; })).size(),
              static_cast<std::size_t>(size));
    EXPECT_THAT(ids_of(Dataset::range(size).select([](std::int64_t) { return false; })), IsEmpty());
  }
}

TEST(SelectTest, SelectsAndSplitsNest) {
  const Dataset thirds =
      Dataset::range(60).select(kEven).select([](std::int64_t x) { return x % 3 == 0; });
  EXPECT_THAT(ids_of(thirds), ElementsAre(0, 6, 12, 18, 24, 30, 36, 42, 48, 54));
  const auto [part, rest] = thirds.split(0.5, 1);
  EXPECT_EQ(ids_of(part).size() + ids_of(rest).size(), 10U);
  EXPECT_EQ(ids_of(part.concatenate(rest)).size(), 10U);
}

TEST(SelectTest, ARandomPredicateDrawsTheSameEachTime) {
  const auto drawn = [](std::uint64_t seed) {
    return ids_of(
        Dataset::range(200)
            .map([](std::int64_t x, Rng& rng) {
              return x + static_cast<std::int64_t>(rng.integer(2));
            })
            .select([](std::int64_t, Rng& rng) { return rng.integer(2) == 0; }, {.seed = seed}));
  };
  EXPECT_EQ(drawn(1), drawn(1));
  EXPECT_NE(drawn(1), drawn(2));
}

TEST(SelectTest, VaryingOrdersAndSizesAreRejected) {
  const auto refused = [](const std::function<void()>& make, const std::string& says) {
    try {
      make();
      FAIL() << "not rejected: " << says;
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr(says));
    }
  };
  const Dataset plain = Dataset::range(9);
  for (const bool split : {false, true}) {
    const std::string word = split ? "split" : "select";
    const auto add = [split](const Dataset& in) {
      if (split) return in.split(0.5).first;
      return in.select([](const Sample&) { return true; });
    };
    refused([&] { add(plain.shuffle()); }, word + ": after shuffle");
    refused([&] { add(plain.shuffle().take(3)); }, word + ": after shuffle");
    refused([&] { add(plain.shuffle({.window = 3})); }, word + ": after shuffle");
    refused([&] { add(plain.shuffle({.seed = Seed::random(), .reshuffle_each_epoch = false})); },
            word + ": after shuffle");
    refused([&] { add(plain.repeat()); }, word + ": an endless dataset");
    refused([&] { add(plain.filter(kEven)); }, word + ": a stream");
    refused([&] { add(plain.batch(2)); }, word + ":");
    EXPECT_NO_THROW(ids_of(add(plain.shuffle({.reshuffle_each_epoch = false}))));
    if (!split) {
      EXPECT_NO_THROW(ids_of(add(plain.repeat(2))));
    }
  }
  refused([&] { (void)plain.split(1.5); }, "split: a fraction");
  refused([&] { (void)plain.split(-0.1); }, "split: a fraction");
  refused([&] { (void)plain.select([](float x) { return x > 0; }); }, "f32");
}

TEST(SelectTest, APredicateThatThrowsNamesItsSample) {
  const Dataset chosen = Dataset::range(5000).select(
      [](std::int64_t x) {
        if (x % 1700 == 1699) throw std::runtime_error("undecided");
        return true;
      },
      {.name = "judge"});
  for (int tries = 0; tries < 2; ++tries) {
    try {
      const Loader loader(chosen.batch(2));
      FAIL() << "no error";
    } catch (const SampleError& error) {
      EXPECT_EQ(error.where().sample, (SampleKey{0, 1699})) << "the first of three";
      EXPECT_THAT(error.where().op, HasSubstr("select"));
      EXPECT_THAT(error.where().op, HasSubstr("judge"));
      EXPECT_THAT(error.what(), HasSubstr("undecided"));
      EXPECT_THROW(std::rethrow_exception(error.cause()), std::runtime_error);
    }
  }
}

TEST(SelectTest, APredicateThatThrewRunsAgain) {
  std::atomic<bool> broken{true};
  const Dataset chosen = Dataset::range(9).select([&broken](std::int64_t x) {
    if (broken) throw std::runtime_error("not yet");
    return x > 6;
  });
  EXPECT_THROW(ids_of(chosen), SampleError);
  broken = false;
  EXPECT_THAT(ids_of(chosen), ElementsAre(7, 8));
}

TEST(SelectTest, UnreadableDataNamesItsSample) {
  const Dataset chosen = Dataset::from_index(9, [](std::uint64_t i) {
                           if (i == 4) throw std::runtime_error("torn page");
                           return static_cast<std::int64_t>(i);
                         }).select(kEven);
  try {
    ids_of(chosen);
    FAIL();
  } catch (const SampleError& error) {
    EXPECT_EQ(error.where().sample, (SampleKey{0, 4}));
  }
}

TEST(SelectTest, APlanNeedsAResolvedSelect) {
  const Dataset chosen = Dataset::range(9).select(kEven).batch(2);
  EXPECT_THROW(Plan{chosen}, ConfigError);
  EXPECT_EQ(Plan(chosen.resolve()).steps(), Cardinality::of(3));
}

TEST(SelectTest, ResolveKeepsAllOtherVerbs) {
  const Dataset base = Dataset::range(40).select(kEven);
  const auto kept = [](const Dataset& dataset) {
    Loader whole(dataset.batch(3), {.threads = 2});
    std::size_t rows = 0;
    while (auto batch = whole.next()) rows += batch->rows();
    return rows;
  };
  EXPECT_EQ(kept(base.take(7)), 7U);
  EXPECT_EQ(kept(base.skip(7)), 13U);
  EXPECT_EQ(kept(base.skip(-1)), 0U);
  EXPECT_EQ(kept(base.shard(3, 0)), 7U);
  EXPECT_EQ(kept(base.repeat(3)), 60U);
  EXPECT_EQ(kept(base.enumerate()), 20U);
  EXPECT_EQ(kept(base.cache()), 20U);
  EXPECT_EQ(kept(base.prefetch({.steps = 2}).with_options({.name = "n"})), 20U);
  EXPECT_EQ(kept(base.shuffle({.window = 6})), 20U);
  EXPECT_EQ(kept(base.map(cast(Dtype::f32))), 20U);
  EXPECT_EQ(kept(base.filter([](std::int64_t x) { return x < 10; })), 5U);
  EXPECT_EQ(kept(base.filter([](std::int64_t x) { return x < 10; }, {.mask = true})), 20U);
  EXPECT_EQ(kept(base.take_while([](std::int64_t x) { return x < 10; })), 5U);
  EXPECT_EQ(kept(base.flat_map([](std::int64_t) { return Dataset::range(2); })), 40U);
  EXPECT_EQ(kept(base.batch(4).unbatch()), 20U);
  EXPECT_EQ(kept(base.batch(3, {.tail = Tail::drop}).unbatch()), 18U);
  EXPECT_EQ(kept(Dataset::zip({base, Dataset::range(9)})), 9U);
  EXPECT_EQ(kept(base.concatenate(Dataset::range(2))), 22U);
}

TEST(SelectTest, AStateLoadsOnlyWithTheSameSelect) {
  const auto chosen = [](const std::string& name) {
    return Dataset::range(20).select(kEven, {.name = name}).batch(3);
  };
  Loader first(chosen("a"), {.threads = 1});
  first.next();
  Loader same(chosen("a"), {.threads = 2});
  same.restore(State::parse(first.state().to_json()));
  EXPECT_EQ(same.next()->step(), 1U);
  Loader other(Dataset::range(20).batch(3));
  EXPECT_THROW(other.restore(first.state()), StateError);
}

TEST(SplitTest, PartsAreExactDisjointAndComplete) {
  for (const std::int64_t size : {2, 10, 101, 2000})
    for (const double fraction : {0.1, 0.3, 0.5, 0.8, 0.9}) {
      const auto wanted = static_cast<std::uint64_t>(fraction * static_cast<double>(size) + 0.5);
      if (wanted == 0 || wanted == static_cast<std::uint64_t>(size)) continue;
      const auto [part, rest] = Dataset::range(size).split(fraction, 7);
      EXPECT_EQ(part.cardinality(), Cardinality::of(wanted)) << "before anything runs";
      EXPECT_EQ(rest.cardinality(), Cardinality::of(static_cast<std::uint64_t>(size) - wanted));
      const Numbers a = ids_of(part);
      const Numbers b = ids_of(rest);
      std::set<std::uint64_t> all(a.begin(), a.end());
      all.insert(b.begin(), b.end());
      EXPECT_EQ(a.size(), wanted);
      EXPECT_EQ(b.size(), static_cast<std::uint64_t>(size) - wanted);
      EXPECT_EQ(all.size(), static_cast<std::uint64_t>(size));
      EXPECT_TRUE(std::ranges::is_sorted(a));
      EXPECT_TRUE(std::ranges::is_sorted(b));
    }
}

TEST(SplitTest, TenSamplesAreSplitIntoEightAndTwo) {
  const auto [part, rest] = Dataset::range(10).split(0.8);
  EXPECT_EQ(ids_of(part).size(), 8U);
  EXPECT_EQ(ids_of(rest).size(), 2U);
}

TEST(SplitTest, APartThatWouldBeEmptyIsAConfigErrorWithTheNumbers) {
  const auto text = [](std::int64_t size, double fraction) -> std::string {
    try {
      (void)Dataset::range(size).split(fraction);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(text(10, 0.01), HasSubstr("the first part would be empty: 0.01 of 10 samples is 0"));
  EXPECT_THAT(text(10, 0.01), HasSubstr("use a fraction of at least 0.05 and below 0.95"));
  EXPECT_THAT(text(10, 1.0), HasSubstr("the second part would be empty"));
  EXPECT_THAT(text(1, 0.5), HasSubstr("1 sample cannot fill two parts"));
  EXPECT_EQ(text(10, 0.05), "accepted");
}

TEST(SplitTest, SplitAfterSelectSplitsTheSelectedSamples) {
  const auto [part, rest] = Dataset::range(40).select(kEven).split(0.75, 3);
  EXPECT_TRUE(part.cardinality().is_unknown());
  EXPECT_EQ(part.resolve().cardinality(), Cardinality::of(15));
  EXPECT_EQ(rest.resolve().cardinality(), Cardinality::of(5));
  std::set<std::uint64_t> all;
  for (const Dataset& each : {part, rest})
    for (const std::uint64_t id : ids_of(each)) EXPECT_TRUE(all.insert(id).second) << id;
  EXPECT_EQ(all.size(), 20U);
  const auto none = Dataset::range(40).select([](std::int64_t x) { return x == 3; }).split(0.5);
  EXPECT_THROW((void)none.first.resolve(), ConfigError);
}

TEST(SplitTest, TheSeedDecidesWhichSamples) {
  const Numbers part = ids_of(Dataset::range(500).split(0.3, 7).first);
  EXPECT_EQ(part, ids_of(Dataset::range(500).map(cast(Dtype::f32)).split(0.3, 7).first));
  EXPECT_NE(part, ids_of(Dataset::range(500).split(0.3, 8).first));
}

TEST(SplitTest, ASplitOfShuffledDataIsNotAPrefix) {
  // Both with the same seed: they must not use the same permutation.
  const Numbers part = ids_of(
      Dataset::range(500).shuffle({.seed = 7, .reshuffle_each_epoch = false}).split(0.5, 7).first);
  const auto low = std::ranges::count_if(part, [](std::uint64_t id) { return id < 250; });
  EXPECT_EQ(part.size(), 250U);
  EXPECT_GT(low, 90);
  EXPECT_LT(low, 160);
}

TEST(SplitTest, AStateOfTheOldSplitIsRejectedWithTheReason) {
  Loader loader(Dataset::range(20).split(0.5).first.batch(2));
  loader.next();
  State state = loader.state();
  state.order[1] = "split(0.5, seed=0), first part [9 of 20, #12345678]";
  state.digests.order = "another";
  try {
    loader.restore(state);
    FAIL();
  } catch (const StateError& error) {
    EXPECT_THAT(error.what(), HasSubstr("chose other samples in split()"));
  }
}

TEST(SplitTest, SplitReadsNoData) {
  const Read read;
  const auto [part, rest] = read.dataset(1000).split(0.5);
  const std::uint64_t size = part.resolve().cardinality().count();
  EXPECT_EQ(rest.resolve().cardinality().count(), 1000 - size);
  EXPECT_EQ(*read.calls, 0);
  EXPECT_EQ(ids_of(part).size(), size);
  EXPECT_EQ(*read.calls, static_cast<int>(size)) << "only delivered samples";
}

TEST(SplitTest, RepeatedDataCannotBeSplit) {
  const auto refused = [](const Dataset& copies) {
    try {
      (void)copies.split(0.5, 2);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  const Dataset base = Dataset::range(100);
  EXPECT_THAT(refused(base.repeat(3)), HasSubstr("after repeat(3) copies of a sample"));
  EXPECT_THAT(refused(base.batch(30, {.tail = Tail::wrap}).unbatch()), HasSubstr("batch(30"));
  EXPECT_EQ(refused(base.repeat(1)), "accepted");
  EXPECT_EQ(refused(base.batch(25, {.tail = Tail::wrap}).unbatch()), "accepted");
}

TEST(SelectTest, TheLengthOfAnUnresolvedSelectThrowsWithTheReason) {
  const Dataset chosen = Dataset::range(9).select(kEven).map(cast(Dtype::f32)).batch(2);
  try {
    (void)chosen.cardinality().count();
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("select() has not run"));
    EXPECT_THAT(error.what(), HasSubstr("resolve()"));
  }
  EXPECT_EQ(chosen.resolve().cardinality(), Cardinality::of(3));
}

}  // namespace
}  // namespace penstock
