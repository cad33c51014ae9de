#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "penstock/dataset.h"
#include "penstock/error.h"
#include "penstock/loader.h"
#include "penstock/op.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::vector<std::int64_t> values_of(const Sample& sample) {
  const auto values = sample.tensor().values<std::int64_t>();
  return {values.begin(), values.end()};
}

TEST(TruncateTest, KeepsTheStartOrTheEndOfEachRow) {
  for (const bool declared : {true, false})
    for (std::int64_t length = 0; length < 7; ++length)
      for (const Keep keep : {Keep::first, Keep::last}) {
        MapOptions options;
        if (declared) options.spec = ElementSpec::single(Dtype::i64, {kUnknown});
        const Dataset rows = Dataset::range(6).map(
            [](const Sample& sample) {
              const auto x = sample.tensor().item<std::int64_t>();
              std::vector<std::int64_t> values;
              for (std::int64_t i = 0; i < x; ++i) values.push_back(10 * x + i);
              return Sample(Tensor::of(values));
            },
            options);
        const Dataset cut = rows.map(truncate(length, "", keep));
        for (std::int64_t x = 0; x < 6; ++x) {
          std::vector<std::int64_t> expected =
              values_of(rows.sample(static_cast<std::uint64_t>(x)));
          if (x > length && keep == Keep::last)
            expected.erase(expected.begin(), expected.end() - length);
          if (x > length) expected.resize(static_cast<std::size_t>(length));
          EXPECT_EQ(values_of(cut.sample(static_cast<std::uint64_t>(x))), expected);
        }
      }
}

TEST(TruncateTest, AFieldOfOneSizeStaysOne) {
  const Dataset rows = Dataset::from_tensor_slices(Tensor::of(
      std::span<const std::int64_t>(std::vector<std::int64_t>{1, 2, 3, 4, 5, 6}), {2, 3}));
  const Dataset cut = rows.map(truncate(2, "", Keep::last));
  EXPECT_EQ(cut.element_spec(), ElementSpec::single(Dtype::i64, {2}));
  EXPECT_EQ(values_of(cut.sample(1)), (std::vector<std::int64_t>{5, 6}));
  EXPECT_EQ(rows.map(truncate(9)).element_spec(), rows.element_spec());
}

TEST(TruncateTest, WrongArgumentsAreRefused) {
  EXPECT_THAT([] { (void)truncate(-1); },
              ThrowsMessage<ConfigError>(HasSubstr("must not be negative")));
  EXPECT_THAT([] { (void)Dataset::range(3).map(truncate(1)); },
              ThrowsMessage<ConfigError>(HasSubstr("one dimension or more")));
}

}  // namespace
}  // namespace penstock
