#include "order/permutation.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/mix.h"
#include "penstock/error.h"

namespace penstock {
namespace {

using Order = std::vector<std::uint64_t>;
using Key = Permutation::Key;

constexpr std::uint64_t kLargerSizes[] = {4095, 4096, 4097, 10'007, 65'536, 65'537, 100'000};
constexpr std::uint64_t kHugeSizes[] = {5'000'000,
                                        (1ULL << 32) - 1,
                                        1ULL << 32,
                                        (1ULL << 32) + 1,
                                        1'000'000'000'000,
                                        (1ULL << 61) + 1,
                                        Permutation::kSizeMax - 1,
                                        Permutation::kSizeMax};
// Around the 16 lanes of a block and the 1024 positions of a chunk.
constexpr std::size_t kCounts[] = {0, 1, 15, 16, 17, 1023, 1024, 1025, 2500};

Order order_of(std::uint64_t size, Key key) {
  const Permutation permutation(size, key);
  Order order(size);
  // Tiny sizes walk long cycles, for which whole blocks do not pay.
  if (size < 64) {
    for (std::uint64_t position = 0; position < size; ++position) {
      order[position] = permutation(position);
    }
  } else {
    std::iota(order.begin(), order.end(), std::uint64_t{0});
    permutation.apply(order);
  }
  return order;
}

void expect_bijection(std::uint64_t size) {
  const Permutation permutation(size, {.seed = 3, .pass = 1, .round = 4});
  ASSERT_EQ(permutation.size(), size);
  std::vector<bool> seen(size);
  for (std::uint64_t position = 0; position < size; ++position) {
    const std::uint64_t number = permutation(position);
    ASSERT_LT(number, size);
    ASSERT_FALSE(seen[number]) << "size " << size << ": " << number << " comes twice";
    seen[number] = true;
    ASSERT_EQ(permutation.inverse(number), position) << "size " << size;
  }
}

TEST(PermutationTest, EveryNumberOccursExactlyOnceAtEverySmallSize) {
  for (std::uint64_t size = 0; size <= 2100; ++size) expect_bijection(size);
}

TEST(PermutationTest, EveryNumberOccursExactlyOnceAtLargerSizes) {
  for (const std::uint64_t size : kLargerSizes) expect_bijection(size);
}

// Some positions of a huge order: both ends, and arbitrary ones.
Order sampled_positions(std::uint64_t size) {
  Order positions;
  for (std::uint64_t i = 0; i < 100; ++i) {
    positions.push_back(i);
    positions.push_back(size - 1 - i);
  }
  for (std::uint64_t i = 0; i < 300; ++i) positions.push_back(mix(i + 1) % size);
  return positions;
}

TEST(PermutationTest, InverseFindsThePositionAtHugeSizes) {
  for (const std::uint64_t size : kHugeSizes) {
    const Permutation permutation(size, {.seed = 5, .pass = 2, .round = 1});
    for (const std::uint64_t position : sampled_positions(size)) {
      ASSERT_EQ(permutation.inverse(permutation(position)), position) << "size " << size;
      ASSERT_EQ(permutation(permutation.inverse(position)), position) << "size " << size;
    }
  }
}

TEST(PermutationTest, ApplyEqualsSingleCalls) {
  std::vector<std::uint64_t> sizes(std::begin(kHugeSizes), std::end(kHugeSizes));
  sizes.insert(sizes.end(), {1, 2, 3, 100, 513, 1000, 1024, 1025});
  for (const std::uint64_t size : sizes) {
    const Permutation permutation(size, {.seed = 9});
    for (const std::size_t count : kCounts) {
      if (size < 64 && count > 17) continue;
      Order positions(count);
      Order expected(count);
      for (std::size_t i = 0; i < count; ++i) {
        positions[i] = mix(i) % size;  // Unordered, and with repeats if the size is small.
        expected[i] = permutation(positions[i]);
      }
      permutation.apply(positions);
      ASSERT_EQ(positions, expected) << "size " << size << ", count " << count;
    }
  }
}

TEST(PermutationTest, PositionsAndNumbersOutOfRangeThrow) {
  EXPECT_THROW(static_cast<void>(Permutation(0, {})(0)), InternalError);
  EXPECT_THROW(static_cast<void>(Permutation(0, {}).inverse(0)), InternalError);
  const Permutation permutation(1000, {});
  EXPECT_THROW(static_cast<void>(permutation(1000)), InternalError);
  EXPECT_THROW(static_cast<void>(permutation.inverse(1000)), InternalError);
  Order positions(2000, 1);
  positions.back() = 1000;
  EXPECT_THROW(permutation.apply(positions), InternalError);
  EXPECT_THROW(Permutation(Permutation::kSizeMax + 1, {}), InternalError);
  EXPECT_THROW(Permutation(std::numeric_limits<std::uint64_t>::max(), {}), InternalError);
}

TEST(PermutationTest, ChangingSeedPassOrRoundChangesTheOrder) {
  std::set<Order> orders;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    for (std::uint64_t pass = 0; pass < 6; ++pass) {
      for (std::uint64_t round = 0; round < 6; ++round) {
        orders.insert(order_of(100, {.seed = seed, .pass = pass, .round = round}));
      }
    }
  }
  EXPECT_EQ(orders.size(), 6U * 6U * 6U);
  for (int bit = 3; bit < 64; ++bit) {
    const std::uint64_t word = std::uint64_t{1} << bit;
    orders.insert(order_of(100, {.seed = word}));
    orders.insert(order_of(100, {.pass = word}));
    orders.insert(order_of(100, {.round = word}));
  }
  EXPECT_EQ(orders.size(), 6U * 6U * 6U + 3U * 61U);
}

// Golden values: seeds of users determine these orders, and saved states count positions in them. A
// failure here means that the change breaks every shuffled run that is resumed or repeated.
TEST(PermutationTest, TheOrderNeverChanges) {
  struct Golden {
    std::uint64_t size;
    Key key;
    Order first;
  };
  const Golden goldens[] = {
      {10, {0, 0, 0}, {0, 9, 6, 8, 5, 2, 7, 3, 4, 1}},
      {10, {0, 1, 0}, {5, 0, 8, 9, 3, 1, 4, 7, 2, 6}},
      {10, {0, 0, 1}, {0, 8, 1, 2, 7, 6, 4, 3, 5, 9}},
      {10, {1, 0, 0}, {9, 7, 4, 5, 2, 1, 0, 8, 6, 3}},
      {1000, {0, 0, 0}, {178, 453, 796, 107, 831, 709}},
      {1000, {42, 3, 0}, {633, 273, 825, 562, 289, 308}},
      {5000000, {0, 0, 0}, {3693876, 2166822, 3471270, 1914445, 2220216, 639368}},
      {5000000, {1234567890123456789, 7, 2}, {2775149, 3639127, 1622875, 4879216, 1364663, 96931}},
      {4294967296,
       {1, 0, 0},
       {2342272014, 3929666365, 4169682014, 390555107, 2543745681, 2254143217}},
      {1000000000000,
       {0, 0, 0},
       {707481885860, 572335796608, 46748382876, 759106660806, 26574401398, 45229234873}},
      {4611686018427387904,
       {18446744073709551615U, 18446744073709551615U, 18446744073709551615U},
       {1113821964790654882, 2757239235822066195, 3955606454789269751, 1397471258057490149}},
  };
  for (const Golden& golden : goldens) {
    const Permutation permutation(golden.size, golden.key);
    Order first(golden.first.size());
    for (std::uint64_t position = 0; position < first.size(); ++position) {
      first[position] = permutation(position);
    }
    EXPECT_EQ(first, golden.first)
        << "size " << golden.size << ", seed " << golden.key.seed << ", pass " << golden.key.pass
        << ", round " << golden.key.round;
  }
}

// Statistics. Every score is a z-score: about normal(0, 1) for truly random orders. All keys are
// fixed, so a test either always passes or always fails.
constexpr double kScoreMax = 5.0;

// Wilson and Hilferty's cube root: close to normal even for one degree of freedom.
double chi_square_score(double chi_square, double degrees) {
  const double spread = 2.0 / (9.0 * degrees);
  return (std::cbrt(chi_square / degrees) - (1.0 - spread)) / std::sqrt(spread);
}

// Numbers or positions of [0, size) in bins: one each up to 100, else 16.
class Bins {
 public:
  explicit Bins(std::uint64_t size) : size_(size), members_(size <= 100 ? size : 16) {
    for (std::uint64_t value = 0; value < size; ++value) members_[of(value)] += 1.0;
  }
  [[nodiscard]] std::size_t count() const { return members_.size(); }
  [[nodiscard]] double members(std::size_t bin) const { return members_[bin]; }
  [[nodiscard]] std::size_t of(std::uint64_t value) const { return value * count() / size_; }

 private:
  std::uint64_t size_;
  std::vector<double> members_;
};

// How often each pair of bins was seen.
class PairTable {
 public:
  explicit PairTable(const Bins& bins) : bins_(bins), seen_(bins.count() * bins.count()) {}

  void add(std::uint64_t left, std::uint64_t right) {
    seen_[bins_.of(left) * bins_.count() + bins_.of(right)] += 1.0;
    total_ += 1.0;
  }

  // Chi-square against independent bins; `distinct` when left and right are never equal.
  [[nodiscard]] double chi_square(double size, bool distinct) const {
    double sum = 0.0;
    for (std::size_t left = 0; left < bins_.count(); ++left) {
      for (std::size_t right = 0; right < bins_.count(); ++right) {
        const double same = distinct && left == right ? 1.0 : 0.0;
        const double pairs = bins_.members(left) * (bins_.members(right) - same);
        const double expected = total_ * pairs / (size * (size - (distinct ? 1.0 : 0.0)));
        const double off = seen_[left * bins_.count() + right] - expected;
        if (expected > 0.0) sum += off * off / expected;
      }
    }
    return sum;
  }

 private:
  const Bins& bins_;
  std::vector<double> seen_;
  double total_ = 0.0;
};

// Accumulates statistics over many orders of one size.
class OrderScores {
 public:
  explicit OrderScores(std::uint64_t size)
      : size_(size), bins_(size), numbers_(bins_), pairs_(kPairPlaces, PairTable(bins_)) {}
  OrderScores(const OrderScores&) = delete;
  OrderScores& operator=(const OrderScores&) = delete;

  void add(const Order& order) {
    ++orders_;
    PairTable within_numbers(bins_);
    PairTable within_pairs(bins_);
    double distance = 0.0;
    for (std::uint64_t position = 0; position < size_; ++position) {
      const std::uint64_t number = order[position];
      numbers_.add(position, number);
      const double off = static_cast<double>(number) - static_cast<double>(position);
      distance += off * off;
      if (size_ < kSizeOfWithin) continue;
      within_numbers.add(position, number);
      within_pairs.add(number, order[(position + 1) % size_]);
    }
    const std::array<std::uint64_t, kPairPlaces> places{0, size_ / 2 - 1, size_ - 2};
    for (std::size_t i = 0; i < kPairPlaces; ++i) {
      pairs_[i].add(order[places[i]], order[places[i] + 1]);
    }
    add_correlation(1.0 - 6.0 * distance / (count() * (count() * count() - 1.0)));
    if (size_ <= kSizeOfWhole) ++wholes_[order];
    if (size_ >= kSizeOfWithin) {
      within_numbers_ += within_numbers.chi_square(count(), false);
      within_pairs_ += within_pairs.chi_square(count(), true);
    }
  }

  // Name of each score -> score.
  [[nodiscard]] std::map<std::string, double> scores() const {
    std::map<std::string, double> scores;
    const double orders = static_cast<double>(orders_);
    const double bins = static_cast<double>(bins_.count());
    const double inner = (bins - 1.0) * (bins - 1.0);  // Rows and columns of an order are full.
    const double finite = (count() - 1.0) / count();
    scores["number at a position"] =
        chi_square_score(numbers_.chi_square(count(), false) * finite, inner);
    const double cells = bins_.count() == size_ ? bins * (bins - 1.0) : bins * bins;
    for (std::size_t i = 0; i < kPairPlaces && size_ > 1; ++i) {
      scores["neighbors, place " + std::to_string(i)] =
          chi_square_score(pairs_[i].chi_square(count(), true), cells - 1.0);
    }
    scores["rank correlation, mean"] = correlation_ / orders * std::sqrt(orders * (count() - 1.0));
    const double mean = square_ / orders;
    const double variance = square_of_square_ / orders - mean * mean;
    if (variance > 0.0) {
      scores["rank correlation, variance"] = (mean - 1.0) / std::sqrt(variance / orders);
    }
    if (size_ <= kSizeOfWhole) scores["whole orders"] = whole_score();
    if (size_ >= kSizeOfWithin) {
      scores["number at a position, within an order"] =
          chi_square_score(within_numbers_ * finite, orders * inner);
      scores["neighbors, within an order"] =
          chi_square_score(within_pairs_ * finite, orders * inner);
    }
    return scores;
  }

 private:
  static constexpr std::size_t kPairPlaces = 3;
  static constexpr std::uint64_t kSizeOfWhole = 5;  // 5! orders can still be counted one by one.
  static constexpr std::uint64_t kSizeOfWithin = 1000;  // One order fills 16 x 16 bins.

  [[nodiscard]] double count() const { return static_cast<double>(size_); }

  // Spearman's coefficient of a random order has mean 0 and variance 1 / (size - 1).
  void add_correlation(double coefficient) {
    const double square = coefficient * coefficient * (count() - 1.0);
    correlation_ += coefficient;
    square_ += square;
    square_of_square_ += square * square;
  }

  [[nodiscard]] double whole_score() const {
    const double kinds = std::tgamma(count() + 1.0);
    const double expected = static_cast<double>(orders_) / kinds;
    double sum = (kinds - static_cast<double>(wholes_.size())) * expected;
    for (const auto& [order, times] : wholes_) {
      sum += (times - expected) * (times - expected) / expected;
    }
    return chi_square_score(sum, kinds - 1.0);
  }

  std::uint64_t size_;
  Bins bins_;
  PairTable numbers_;
  std::vector<PairTable> pairs_;
  std::map<Order, int> wholes_;
  int orders_ = 0;
  double correlation_ = 0.0;
  double square_ = 0.0;
  double square_of_square_ = 0.0;
  double within_numbers_ = 0.0;
  double within_pairs_ = 0.0;
};

class PermutationStatisticsTest : public testing::TestWithParam<std::uint64_t> {
 protected:
  // The orders of consecutive keys, each by itself and each relative to the one before.
  template <typename KeyOf>
  static void expect_random(KeyOf key_of) {
    const std::uint64_t size = GetParam();
    const std::uint64_t orders = size > 2000 ? 200 : 1000;
    OrderScores alone(size);
    OrderScores relative(size);
    Order before = order_of(size, key_of(0));
    Order step(size);
    for (std::uint64_t i = 1; i <= orders; ++i) {
      Order order = order_of(size, key_of(i));
      alone.add(order);
      for (std::uint64_t position = 0; position < size; ++position) {
        step[before[position]] = order[position];
      }
      relative.add(step);
      before.swap(order);
    }
    for (const auto& [name, score] : alone.scores()) EXPECT_LT(std::abs(score), kScoreMax) << name;
    for (const auto& [name, score] : relative.scores()) {
      EXPECT_LT(std::abs(score), kScoreMax) << name << ", relative to the order before";
    }
  }
};

TEST_P(PermutationStatisticsTest, ConsecutiveSeedsGiveUniformAndUnrelatedOrders) {
  expect_random([](std::uint64_t i) { return Key{.seed = i}; });
}

TEST_P(PermutationStatisticsTest, ConsecutivePassesGiveUniformAndUnrelatedOrders) {
  expect_random([](std::uint64_t i) { return Key{.seed = 1, .pass = i}; });
}

TEST_P(PermutationStatisticsTest, ConsecutiveRoundsGiveUniformAndUnrelatedOrders) {
  expect_random([](std::uint64_t i) { return Key{.seed = 2, .round = i}; });
}

INSTANTIATE_TEST_SUITE_P(Sizes, PermutationStatisticsTest,
                         testing::Values(2, 3, 5, 7, 10, 16, 33, 100, 1000, 1024, 5000),
                         testing::PrintToStringParamName());

// Orders too long to check as a whole: positions that differ in one bit, top and bottom of the
// number.
TEST(PermutationTest, NearbyPositionsOfHugeOrdersHaveUnrelatedNumbers) {
  constexpr std::uint64_t kPairsPerCell = 8;
  for (const std::uint64_t size : kHugeSizes) {
    const std::uint64_t sixteenth = size / 16 + 1;
    for (std::uint64_t bit = 1; bit < size / 2; bit *= 2) {
      const Permutation permutation(size, {.seed = bit});
      std::array<std::array<double, 256>, 2> seen{};
      for (std::uint64_t draw = 0; draw < 256 * kPairsPerCell; ++draw) {
        const std::uint64_t position = mix(draw) % (size / 2) & ~bit;
        const std::uint64_t left = permutation(position);
        const std::uint64_t right = permutation(position | bit);
        seen[0][left / sixteenth * 16 + right / sixteenth] += 1.0;
        seen[1][left % 16 * 16 + right % 16] += 1.0;
      }
      for (const auto& table : seen) {
        double sum = 0.0;
        for (const double times : table) sum += std::pow(times - kPairsPerCell, 2.0);
        EXPECT_LT(std::abs(chi_square_score(sum / kPairsPerCell, 255.0)), kScoreMax)
            << "size " << size << ", bit " << bit;
      }
    }
  }
}

}  // namespace
}  // namespace penstock
