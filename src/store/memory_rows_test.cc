#include "store/memory_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "base/thread.h"
#include "sample/rows.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Numbers = std::vector<std::uint64_t>;

Numbers count_from(std::uint64_t first, std::size_t count) {
  Numbers numbers(count);
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

/// A block whose row i is a sample that contains numbers[i], and `padding` more bytes.
class NumberBlock {
 public:
  NumberBlock(const ElementSpec& spec, const Numbers& numbers, std::size_t padding = 0)
      : block_(spec, numbers.size(), scratch_) {
    for (std::size_t row = 0; row < numbers.size(); ++row) {
      const std::string text = std::to_string(numbers[row]);
      const Sample sample =
          spec == dense_spec()
              ? Tensor::scalar(numbers[row])
              : Tensor::bytes(text + ":" + std::string(padding - text.size() - 1, '.'));
      EXPECT_FALSE(write_row(view(), row, sample));
      view().identity.sample_id[row] = numbers[row] + 1'000'000;
      view().identity.occurrence[row] = numbers[row] % 7;
    }
  }
  static const ElementSpec& dense_spec() {
    static const ElementSpec spec = ElementSpec::single(Dtype::u64);
    return spec;
  }
  static const ElementSpec& varying_spec() {
    static const ElementSpec spec = ElementSpec::single(Dtype::bytes);
    return spec;
  }
  static const ElementSpec& unknown_spec() {
    static const ElementSpec spec = ElementSpec::unknown();
    return spec;
  }
  [[nodiscard]] const BlockView& view() const { return block_.view(); }

 private:
  Scratch scratch_;
  ScratchBlock block_;
};

/// How many of `numbers` are stored; checks the bytes of each.
std::size_t rows_in(RowStore& store, const ElementSpec& spec, const Numbers& numbers) {
  Scratch scratch;
  const ScratchBlock out(spec, numbers.size(), scratch);
  const auto missing = store.get(numbers, out.view());
  std::size_t next_missing = 0;
  for (std::size_t row = 0; row < numbers.size(); ++row) {
    if (next_missing < missing.size() && missing[next_missing] == row) {
      ++next_missing;
      continue;
    }
    const Tensor tensor = read_row(out.view(), row).tensor();
    EXPECT_EQ(spec == NumberBlock::dense_spec() ? tensor.item<std::uint64_t>()
                                                : std::stoull(std::string(tensor.text())),
              numbers[row]);
    EXPECT_EQ(out.view().identity.sample_id[row], numbers[row] + 1'000'000);
    EXPECT_EQ(out.view().identity.occurrence[row], numbers[row] % 7);
  }
  return numbers.size() - missing.size();
}

TEST(MemoryRowsTest, GetCopiesStoredRowsAndReturnsTheOthers) {
  const ElementSpec& spec = NumberBlock::dense_spec();
  MemoryRows store(UINT64_MAX);
  const Numbers kept{5, 100'000, 255, 256, std::uint64_t{1} << 61};
  store.put(kept, NumberBlock(spec, kept).view());
  EXPECT_EQ(rows_in(store, spec, kept), kept.size());

  Scratch scratch;
  const ScratchBlock out(spec, 4, scratch);
  EXPECT_THAT(store.get(Numbers{6, 256, 100'001, 5}, out.view()), ElementsAre(0, 2));
  EXPECT_EQ(read_row(out.view(), 1).tensor().item<std::uint64_t>(), 256U);
  EXPECT_EQ(read_row(out.view(), 3).tensor().item<std::uint64_t>(), 5U);
}

TEST(MemoryRowsTest, StoredRowsAreNotReplaced) {
  const ElementSpec& spec = NumberBlock::dense_spec();
  MemoryRows store(UINT64_MAX);
  const Numbers first{7};
  store.put(first, NumberBlock(spec, first).view());
  store.put(first, NumberBlock(spec, {8}).view());
  EXPECT_EQ(rows_in(store, spec, first), 1U);
}

TEST(MemoryRowsTest, TheLimitIsRespectedAndEarlierRowsStay) {
  const ElementSpec& spec = NumberBlock::dense_spec();
  constexpr std::uint64_t kBytesMax = 100'000;
  MemoryRows store(kBytesMax);
  const Numbers numbers = count_from(0, 20'000);
  store.put(numbers, NumberBlock(spec, numbers).view());
  EXPECT_LE(store.bytes(), kBytesMax);
  const std::size_t kept = rows_in(store, spec, numbers);
  EXPECT_GT(kept, 1000U);
  EXPECT_LE(kept * sizeof(std::uint64_t), kBytesMax);
  store.put(numbers, NumberBlock(spec, numbers).view());
  EXPECT_EQ(rows_in(store, spec, numbers), kept);
}

TEST(MemoryRowsTest, AStoreWithoutRoomStoresNothing) {
  MemoryRows store(0);
  store.put(Numbers{1}, NumberBlock(NumberBlock::dense_spec(), {1}).view());
  EXPECT_EQ(rows_in(store, NumberBlock::dense_spec(), {1}), 0U);
  EXPECT_EQ(store.bytes(), 0U);
}

TEST(MemoryRowsTest, BytesOfVaryingFieldsCountAgainstTheLimit) {
  const Numbers numbers = count_from(0, 200);
  for (const ElementSpec* spec : {&NumberBlock::varying_spec(), &NumberBlock::unknown_spec()}) {
    MemoryRows store(100'000);
    store.put(numbers, NumberBlock(*spec, numbers, 1000).view());
    EXPECT_LE(store.bytes(), 100'000U) << spec->text();
    const std::size_t kept = rows_in(store, *spec, numbers);
    EXPECT_GT(kept, 50U) << spec->text();
    EXPECT_LE(kept, 100U) << spec->text();
  }
}

TEST(MemoryRowsTest, ThreadsThatPutTheSameRowsCountThemOnce) {
  const Numbers numbers = count_from(0, 1000);
  for (const ElementSpec* spec : {&NumberBlock::dense_spec(), &NumberBlock::varying_spec()}) {
    MemoryRows alone(UINT64_MAX);
    alone.put(numbers, NumberBlock(*spec, numbers, 100).view());
    MemoryRows store(UINT64_MAX);
    {
      std::atomic<int> ready = 0;
      std::vector<Thread> threads;
      threads.reserve(3);
      for (int i = 0; i < 3; ++i)
        threads.emplace_back("putter", [&] {
          const NumberBlock block(*spec, numbers, 100);
          ++ready;
          while (ready < 3) yield_thread();
          store.put(numbers, block.view());
          EXPECT_EQ(rows_in(store, *spec, numbers), numbers.size());
        });
    }
    EXPECT_EQ(store.bytes(), alone.bytes());
  }
}

TEST(MemoryRowsTest, NoNumbersAreNoRows) {
  MemoryRows store(UINT64_MAX);
  Scratch scratch;
  const ScratchBlock block(NumberBlock::dense_spec(), 0, scratch);
  store.put({}, block.view());
  EXPECT_THAT(store.get({}, block.view()), IsEmpty());
  EXPECT_EQ(store.bytes(), 0U);
}

bool always() {
  return true;
}
bool never() {
  return false;
}

TEST(MemoryRowsTest, ARowThatAnotherThreadComputesIsAwaited) {
  MemoryRows store(UINT64_MAX);
  const Numbers numbers{5, 6};
  const std::vector<std::uint32_t> missing{0, 1};
  std::atomic<bool> found{false};
  std::atomic<bool> waiting{false};
  std::optional<Thread> other;
  {
    const RowStore::Claim claim(store, numbers, missing);
    EXPECT_THAT(claim.rows(), ElementsAre(0, 1));
    other.emplace("other", [&] {
      const RowStore::Claim late(store, numbers, missing);
      EXPECT_THAT(late.rows(), IsEmpty());
      EXPECT_THAT(late.others(), ElementsAre(0, 1));
      EXPECT_FALSE(store.wait_for(5, never)) << "it is no longer needed";
      waiting = true;
      EXPECT_TRUE(store.wait_for(5, always) && store.wait_for(6, always));
      const NumberBlock out(NumberBlock::dense_spec(), {0, 0});
      found = store.get(numbers, missing, out.view()).empty();
    });
    while (!waiting) yield_thread();
    const NumberBlock block(NumberBlock::dense_spec(), numbers);
    store.put(numbers, block.view());
  }
  other->join();
  EXPECT_TRUE(found);
}

TEST(MemoryRowsTest, AfterAClaimWithoutARowTheNextThreadMayClaimIt) {
  MemoryRows store(UINT64_MAX);
  const Numbers numbers{5};
  const std::vector<std::uint32_t> missing{0};
  {
    const RowStore::Claim failed(store, numbers, missing);
  }
  EXPECT_TRUE(store.wait_for(5, always));
  const RowStore::Claim next(store, numbers, missing);
  EXPECT_THAT(next.rows(), ElementsAre(0));
  const RowStore::Claim inner(store, numbers, missing);
  EXPECT_THAT(inner.rows(), ElementsAre(0)) << "a thread never waits for itself";
}

TEST(MemoryRowsTest, RowsOfAFullStoreAreNotAwaited) {
  MemoryRows store(0);
  const Numbers numbers{5};
  const std::vector<std::uint32_t> missing{0};
  const NumberBlock block(NumberBlock::dense_spec(), numbers);
  store.put(numbers, block.view());
  const RowStore::Claim claim(store, numbers, missing);
  Thread other("other", [&] {
    const RowStore::Claim late(store, numbers, missing);
    EXPECT_THAT(late.rows(), ElementsAre(0));
  });
  other.join();
}

}  // namespace
}  // namespace penstock
