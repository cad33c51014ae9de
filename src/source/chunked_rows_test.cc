#include "source/chunked_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <map>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "base/thread.h"
#include "penstock/error.h"
#include "penstock/loader.h"
#include "penstock/plan.h"
#include "penstock/table_chunks.h"
#include "source/arrow_tables_for_tests.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using testing::ArrowPart;
using testing::ArrowStream;
using testing::bits_of;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::numbers;
using testing::table;
using testing::texts;
using ::testing::ThrowsMessage;

/// A stream that owns its batches, as one of another library does.
ArrowArrayStream owned_stream(std::vector<ArrowPart> batches) {
  auto* const own = new ArrowStream{std::move(batches)};
  ArrowArrayStream stream = own->stream();
  stream.release = [](ArrowArrayStream* self) {
    delete static_cast<ArrowStream*>(self->private_data);
    self->release = nullptr;
  };
  return stream;
}

/// Rows {id, word} from `first` on.
ArrowPart rows_from(std::int64_t first, std::int64_t rows) {
  std::vector<std::int64_t> ids;
  std::vector<std::string> words;
  for (std::int64_t i = first; i < first + rows; ++i) {
    ids.push_back(i);
    words.push_back("word " + std::to_string(i));
  }
  return table({numbers("id", "l", ids), texts("word", words)}, rows);
}

/// Chunks of the rows 0, 1, 2, ..., in files of two chunks, and how often each was loaded.
struct Chunks {
  std::vector<std::uint64_t> rows;
  TableChunkOptions options = {};
  std::map<std::uint64_t, std::vector<ArrowPart>> others = {};  // instead of the right batches
  std::function<void(std::uint64_t chunk)> before_load = {};
  std::vector<std::atomic<int>> loads = std::vector<std::atomic<int>>(rows.size());

  Dataset dataset() {
    ChunkedTable chunked;
    std::vector<std::int64_t> firsts;
    std::int64_t first = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (i % 2 == 0) chunked.files.push_back("file" + std::to_string(i / 2));
      chunked.chunks.push_back({rows[i], i / 2, i % 2});
      firsts.push_back(first);
      first += static_cast<std::int64_t>(rows[i]);
    }
    chunked.load = [this, firsts](std::uint64_t chunk, ArrowArrayStream& stream) {
      ++loads[chunk];
      if (before_load) before_load(chunk);
      if (const auto other = others.find(chunk); other != others.end()) {
        stream = owned_stream(other->second);
        return;
      }
      const auto half = static_cast<std::int64_t>(rows[chunk]) / 2;
      const auto rest = static_cast<std::int64_t>(rows[chunk]) - half;
      stream =
          owned_stream({rows_from(firsts[chunk], half), rows_from(firsts[chunk] + half, rest)});
    };
    ArrowSchema schema = testing::schema_of(rows_from(0, 0));
    return from_arrow_chunks(schema, chunked, options);
  }
  [[nodiscard]] std::vector<int> counts() const { return {loads.begin(), loads.end()}; }
};

std::vector<std::int64_t> ids_of(Loader& loader) {
  std::vector<std::int64_t> ids;
  while (const auto batch = loader.next())
    for (std::size_t row = 0; row < batch->rows(); ++row) {
      ids.push_back(batch->row(row)["id"].item<std::int64_t>());
      EXPECT_EQ(batch->row(row)["word"].text(), "word " + std::to_string(ids.back()));
    }
  return ids;
}

std::vector<std::int64_t> up_to(std::int64_t end) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < end; ++i) all.push_back(i);
  return all;
}

TEST(ChunkedRowsTest, RowsOfAllChunksFollowEachOtherAndEachIsLoadedOnce) {
  Chunks chunks{{4, 0, 7, 1, 4}};
  {
    const Dataset rows = chunks.dataset();
    EXPECT_EQ(rows.cardinality().count(), 16U);
    EXPECT_EQ(rows.element_spec().text(), "{id: i64[], word: string[]}");
    EXPECT_THAT(chunks.counts(), Each(0)) << "nothing is loaded before it is needed";
    Loader loader(rows.batch(5), {.threads = 4});
    EXPECT_EQ(ids_of(loader), up_to(16));
    EXPECT_THAT(chunks.counts(), ElementsAre(1, 0, 1, 1, 1));
    Loader shuffled(rows.shuffle({3}).batch(5), {.threads = 4});
    EXPECT_THAT(ids_of(shuffled), ::testing::UnorderedElementsAreArray(up_to(16)));
    EXPECT_THAT(chunks.counts(), ElementsAre(1, 0, 1, 1, 1));
  }
  EXPECT_EQ(testing::arrow_alive(), 0);
}

TEST(ChunkedRowsTest, RowsOfOneChunkInABatchCostOneLoadEvenIfNoChunkFits) {
  Chunks chunks{{50, 50, 50, 50}, {.chunk_bytes_max = 1}};
  {
    Loader loader(chunks.dataset().shuffle({1}).batch(100), {.threads = 0});
    EXPECT_THAT(ids_of(loader), ::testing::UnorderedElementsAreArray(up_to(200)));
    for (const int loads : chunks.counts()) EXPECT_LE(loads, 8);
  }
  EXPECT_EQ(testing::arrow_alive(), 0);
}

TEST(ChunkedRowsTest, ThreadsThatNeedOneChunkLoadItOnce) {
  Chunks chunks{{4000}};
  Loader loader(chunks.dataset().shuffle({1}).batch(10), {.threads = 8});
  EXPECT_THAT(ids_of(loader), ::testing::UnorderedElementsAreArray(up_to(4000)));
  EXPECT_THAT(chunks.counts(), ElementsAre(1));
}

TEST(ChunkedRowsTest, AChunkWithOtherRowsOrColumnsFailsWithItsFileAndNumber) {
  Chunks chunks{{2, 2, 2, 2}, {.chunk_word = "row group"}};
  chunks.others[1] = {rows_from(2, 3)};
  chunks.others[2] = {
      table({numbers<std::int32_t>("id", "i", {4, 5}), texts("word", {"", ""})}, 2)};
  chunks.others[3] = {table({numbers<std::int64_t>("id", "l", {6, 7})}, 2)};
  const Dataset rows = chunks.dataset();
  EXPECT_THAT([&] { (void)rows.sample(2); },
              ThrowsMessage<SampleError>(
                  AllOf(HasSubstr("row group 1: it has 3 rows, not 2"), HasSubstr("file0"))));
  EXPECT_THAT([&] { (void)rows.sample(4); },
              ThrowsMessage<SampleError>(AllOf(HasSubstr("row group 0: the columns have changed: "
                                                         "column \"id\" has another type"),
                                               HasSubstr("file1"))));
  EXPECT_THAT([&] { (void)rows.sample(6); },
              ThrowsMessage<SampleError>(AllOf(HasSubstr("column \"word\" is not where it was"),
                                               HasSubstr("row group 1"), HasSubstr("file1"))));
  Loader loader(rows.batch(3), {.threads = 2, .on_error = OnError::skip});
  EXPECT_EQ(ids_of(loader), up_to(2));
}

TEST(ChunkedRowsTest, AFailedLoadIsTriedAgainButNotForEveryRow) {
  Chunks chunks{{1000, 10}};
  bool broken = true;
  chunks.before_load = [&](std::uint64_t chunk) {
    if (chunk == 0 && broken) throw std::runtime_error("the disk is on fire");
  };
  const Dataset rows = chunks.dataset();
  Loader loader(rows.batch(100), {.threads = 0, .on_error = OnError::skip, .skip_limit = 2000});
  EXPECT_THAT(ids_of(loader),
              ElementsAre(1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007, 1008, 1009));
  EXPECT_LE(chunks.loads[0], 10);  // at requests 1, 2, 4, 8, ..., 512
  EXPECT_THAT([&] { (void)rows.sample(7); },
              ThrowsMessage<SampleError>(
                  AllOf(HasSubstr("chunk 0: the disk is on fire"), HasSubstr("file0"))));
  broken = false;
  int tries = 1;
  for (; tries <= 1024; ++tries) {
    try {
      EXPECT_EQ(rows.sample(7)["id"].item<std::int64_t>(), 7);
      break;
    } catch (const SampleError&) {  // not tried yet
    }
  }
  EXPECT_LE(tries, 1024);
}

TEST(ChunkedRowsTest, AnErrorThatMayPassIsRetried) {
  Chunks chunks{{10}};
  int failures = 2;
  chunks.before_load = [&](std::uint64_t) {
    if (failures-- > 0) throw std::system_error(EIO, std::generic_category(), "reading");
  };
  Loader loader(chunks.dataset().batch(10), {.threads = 0});
  EXPECT_EQ(ids_of(loader), up_to(10));
}

TEST(ChunkedRowsTest, ABadRowOfAChunkIsTheOnlyOneThatIsSkipped) {
  Chunks chunks{{4, 4}};
  chunks.others[0] = {table({numbers<std::int64_t>("id", "l", {0, 1, 2, 3}, bits_of({1, 0, 1, 1})),
                             texts("word", {"word 0", "word 1", "word 2", "word 3"})},
                            4)};
  Loader loader(chunks.dataset().shuffle({5}).batch(8), {.threads = 0, .on_error = OnError::skip});
  EXPECT_THAT(ids_of(loader), ::testing::UnorderedElementsAre(0, 2, 3, 4, 5, 6, 7));
}

TEST(ChunkedRowsTest, AStoppedLoaderDoesNotWaitForAChunkThatAnotherOneLoads) {
  Chunks chunks{{10}};
  std::atomic<bool> loading{false};
  std::atomic<bool> release{false};
  chunks.before_load = [&](std::uint64_t) {
    loading = true;
    loading.notify_all();
    release.wait(false);
  };
  const Dataset rows = chunks.dataset();
  Loader first(rows.batch(10), {.threads = 1});
  Thread consumer("consumer", [&] { EXPECT_EQ(ids_of(first), up_to(10)); });
  loading.wait(false);
  Loader second(rows.batch(10), {.threads = 1});
  std::atomic<bool> ended{false};
  Thread waits("waits", [&] {
    try {
      while (second.next()) {
      }
    } catch (const CancelledError&) {  // stopped before or while it waited
    }
    ended = true;
  });
  while (!ended) {
    second.stop();
    yield_thread();
  }
  waits.join();
  EXPECT_EQ(chunks.loads[0], 1);
  release = true;
  release.notify_all();
  consumer.join();
  EXPECT_THAT(chunks.counts(), ElementsAre(1));
}

TEST(ChunkedRowsTest, AStateKnowsOtherRowsColumnsAndIdentities) {
  const auto order_of = [](std::vector<std::uint64_t> rows, const std::string& identity) {
    Chunks chunks{std::move(rows), {.identity = identity}};
    return chunks.dataset().digests().order;
  };
  EXPECT_EQ(order_of({4, 4}, "a"), order_of({4, 4}, "a"));
  EXPECT_EQ(order_of({4, 4}, "a"), order_of({2, 6}, "a")) << "the same rows in other chunks";
  EXPECT_NE(order_of({4, 4}, "a"), order_of({4, 5}, "a"));
  EXPECT_NE(order_of({4, 4}, "a"), order_of({4, 4}, "b"));
}

TEST(ChunkedRowsTest, APlanWarnsOfAWholeShuffleOfChunksThatDoNotFit) {
  const auto plan_of = [](std::uint64_t bytes_max, const auto& change) {
    Chunks chunks{{1000, 1000, 500}, {.chunk_bytes_max = bytes_max, .chunk_word = "row group"}};
    return Plan(change(chunks.dataset()).batch(10)).explain();
  };
  const auto warned = AllOf(HasSubstr("warning: from_arrow_chunks"), HasSubstr("3 row groups"),
                            HasSubstr("a row costs a row group of 1000 rows; shuffle(blocks=...)"));
  const auto whole = [](const Dataset& rows) { return rows.shuffle({1}); };
  EXPECT_THAT(plan_of(10'000, whole), warned);
  EXPECT_THAT(
      plan_of(10'000, [](const Dataset& rows) { return rows.cache().shuffle({1}).repeat(2); }),
      warned);
  EXPECT_THAT(plan_of(1'000'000, whole), Not(HasSubstr("warning")));
  EXPECT_THAT(plan_of(10'000, [](const Dataset& rows) { return rows; }), Not(HasSubstr("warning")));
  EXPECT_THAT(
      plan_of(10'000, [](const Dataset& rows) { return rows.shuffle({.seed = 1, .window = 100}); }),
      Not(HasSubstr("warning")));
}

TEST(ChunkedRowsTest, WrongTablesAreRefused) {
  const auto made_of = [](ChunkedTable chunked) {
    return [chunked] {
      ArrowSchema schema = testing::schema_of(rows_from(0, 0));
      (void)from_arrow_chunks(schema, chunked);
    };
  };
  const auto load = [](std::uint64_t, ArrowArrayStream&) {};
  EXPECT_THAT(made_of({{"a"}, {{1, 0, 0}}, {}}),
              ThrowsMessage<ConfigError>(HasSubstr("no function to load")));
  EXPECT_THAT(made_of({{"a"}, {{1, 1, 0}}, load}), ThrowsMessage<ConfigError>(HasSubstr("file 1")));
  EXPECT_THAT(made_of({{"a"}, {{UINT64_MAX, 0, 0}}, load}),
              ThrowsMessage<ConfigError>(HasSubstr("more than 2^62 rows")));
  ArrowSchema schema = testing::schema_of(rows_from(0, 0));
  const Dataset rows = from_arrow_chunks(schema, {{"a"}, {{1, 0, 0}}, load});
  EXPECT_THAT([&] { (void)rows.sample(0); },
              ThrowsMessage<SampleError>(HasSubstr("it was not loaded")));
}

}  // namespace
}  // namespace penstock
