#include "source/ragged_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "base/temp_folder_for_tests.h"
#include "penstock/error.h"
#include "penstock/loader.h"
#include "penstock/plan.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::vector<std::int64_t> numbers(const Tensor& tensor) {
  std::vector<std::int64_t> values;
  for (std::size_t i = 0; i < tensor.raw().size() / dtype_size(tensor.dtype()); ++i) {
    std::int64_t value = 0;
    std::memcpy(&value, tensor.raw().data() + i * dtype_size(tensor.dtype()),
                dtype_size(tensor.dtype()));
    values.push_back(value);
  }
  return values;
}

template <typename T>
void append(std::string& text, std::vector<T> values) {
  text.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

void put_file(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

TEST(RaggedRowsTest, RowsLieBetweenOffsets) {
  const Dataset rows = Dataset::from_ragged(Tensor::of(std::vector<std::int64_t>{1, 2, 3, 4, 5}),
                                            Tensor::of(std::vector<std::int64_t>{0, 2, 2, 5}));
  EXPECT_EQ(rows.cardinality().count(), 3U);
  EXPECT_EQ(rows.element_spec().text(), "i64[?]");
  EXPECT_THAT(numbers(rows.sample(0).tensor()), ElementsAre(1, 2));
  EXPECT_THAT(numbers(rows.sample(1).tensor()), ElementsAre());
  EXPECT_THAT(numbers(rows.sample(2).tensor()), ElementsAre(3, 4, 5));
}

TEST(RaggedRowsTest, WrongOffsetsAreRefused) {
  const auto with = [](std::vector<std::int64_t> offsets) {
    return [offsets] {
      (void)Dataset::from_ragged(Tensor::of(std::vector<float>{1, 2}), Tensor::of(offsets));
    };
  };
  EXPECT_THAT(with({-1, 2}), ThrowsMessage<ConfigError>(HasSubstr("offset 0 is -1")));
  EXPECT_THAT(with({0, 2, 1}), ThrowsMessage<ConfigError>(HasSubstr("offset 2 is 1, after 2")));
  EXPECT_THAT(with({0, 3}), ThrowsMessage<ConfigError>(HasSubstr("there are 2 values")));
  EXPECT_THAT(with({}), ThrowsMessage<ConfigError>(HasSubstr("one more than rows")));
}

TEST(WindowsTest, WindowsOverlapByTheirStride) {
  const Tensor series = Tensor::of(
      std::span<const std::int64_t>(std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}),
      {5, 2});
  const Dataset windows = Dataset::from_windows(series, 2, 1);
  EXPECT_EQ(windows.cardinality().count(), 4U);
  EXPECT_EQ(windows.element_spec().text(), "i64[2, 2]");
  EXPECT_THAT(numbers(windows.sample(3).tensor()), ElementsAre(6, 7, 8, 9));
  EXPECT_EQ(Dataset::from_windows(series, 2).cardinality().count(), 2U);
  EXPECT_EQ(Dataset::from_windows(series, 6).cardinality().count(), 0U);
  EXPECT_THAT([&] { (void)Dataset::from_windows(series, 0); },
              ThrowsMessage<ConfigError>(HasSubstr("length must be positive")));
}

TEST(TokensTest, FilesAreWindowsThatDoNotCrossThem) {
  const TempFolder folder;
  std::string one, two, none;
  append<std::uint16_t>(one, {1, 2, 3, 4, 5});
  append<std::uint16_t>(two, {6, 7, 8, 9, 10, 11});
  put_file(folder.path() + "/a.bin", one);
  put_file(folder.path() + "/b.bin", none);
  put_file(folder.path() + "/c.bin", two);
  const Dataset tokens = Dataset::tokens(folder.path() + "/*.bin", Dtype::u16, 3);
  EXPECT_EQ(tokens.cardinality().count(), 3U);
  EXPECT_THAT(numbers(tokens.sample(0).tensor()), ElementsAre(1, 2, 3));
  EXPECT_THAT(numbers(tokens.sample(1).tensor()), ElementsAre(6, 7, 8));
  EXPECT_THAT(numbers(tokens.sample(2).tensor()), ElementsAre(9, 10, 11));
  put_file(folder.path() + "/d.bin", "odd");
  EXPECT_THAT([&] { (void)Dataset::tokens(folder.path() + "/*.bin", Dtype::u16, 3); },
              ThrowsMessage<ConfigError>(HasSubstr("3 bytes, not a whole number of u16")));
  EXPECT_THAT([&] { (void)Dataset::tokens(folder.path() + "/*.none", Dtype::u16, 3); },
              ThrowsMessage<ConfigError>(HasSubstr("no file matches")));
}

class MegatronTest : public ::testing::Test {
 protected:
  /// An index as its documentation describes it.
  static std::string index(std::uint8_t dtype, const std::vector<std::int32_t>& lengths,
                           const std::vector<std::int64_t>& pointers) {
    std::string text("MMIDIDX\0\0", 9);
    append<std::uint64_t>(text, {1});
    append<std::uint8_t>(text, {dtype});
    append<std::uint64_t>(text, {lengths.size(), lengths.size() + 1});
    append(text, lengths);
    append(text, pointers);
    for (std::size_t i = 0; i <= lengths.size(); ++i)
      append<std::int64_t>(text, {static_cast<std::int64_t>(i)});
    return text;
  }
  void put(const std::string& idx) {
    std::string bin;
    append<std::uint16_t>(bin, {1, 2, 3, 4, 5});
    put_file(folder_.path() + "/x.bin", bin);
    put_file(folder_.path() + "/x.idx", idx);
  }
  [[nodiscard]] Dataset load() const { return Dataset::from_megatron(folder_.path() + "/x"); }
  const TempFolder folder_;
};

TEST_F(MegatronTest, DocumentsAreReadByTheirIndex) {
  put(index(8, {2, 0, 3}, {0, 4, 4}));
  const Dataset documents = load();
  EXPECT_EQ(documents.cardinality().count(), 3U);
  EXPECT_EQ(documents.element_spec().text(), "u16[?]");
  EXPECT_THAT(numbers(documents.sample(2).tensor()), ElementsAre(3, 4, 5));
  EXPECT_EQ(Plan::parse(Plan(documents.batch(2)).serialize(), {}).explain().empty(), false);
}

TEST_F(MegatronTest, AnIndexThatDoesNotFitIsRefused) {
  const auto refusal = [&](const std::string& idx) {
    put(idx);
    return [this] { (void)load(); };
  };
  EXPECT_THAT(refusal(index(8, {2, 4}, {0, 4})),
              ThrowsMessage<ConfigError>(HasSubstr("document 1 has 4 tokens from byte 4")));
  EXPECT_THAT(refusal(index(8, {-1}, {0})), ThrowsMessage<ConfigError>(HasSubstr("has -1 tokens")));
  EXPECT_THAT(refusal(index(8, {1}, {-2})), ThrowsMessage<ConfigError>(HasSubstr("from byte -2")));
  EXPECT_THAT(refusal(index(8, {1}, {1})), ThrowsMessage<ConfigError>(HasSubstr("from byte 1")));
  EXPECT_THAT(refusal(index(6, {1}, {0})), ThrowsMessage<ConfigError>(HasSubstr("dtype code 6")));
  EXPECT_THAT(refusal("no index"), ThrowsMessage<ConfigError>(HasSubstr("not an index")));
  const std::string good = index(8, {2, 3}, {0, 4});
  for (std::size_t bytes = 0; bytes < good.size() - 24; ++bytes)
    EXPECT_THROW(refusal(good.substr(0, bytes))(), ConfigError) << bytes;
  std::string many = good;
  many[18] = '\x7f';  // 2^63 documents or so
  many[25] = '\x7f';
  EXPECT_THROW(refusal(many)(), ConfigError);
}

}  // namespace
}  // namespace penstock
