#include "record/arrow_file_encoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "penstock/error.h"
#include "record/arrow_file_for_tests.h"
#include "sample/spec_of_samples.h"

namespace penstock {
namespace {

using ::penstock::testing::ArrowBatchView;
using ::penstock::testing::ArrowFileView;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

std::string file_of(const std::vector<Sample>& samples, const ElementSpec& spec) {
  ArrowFileEncoder encoder;
  encoder.set_spec(spec);
  std::string file;
  for (std::size_t i = 0; i < samples.size(); ++i) encoder.append(file, samples[i], i);
  encoder.finish(file);
  return file;
}
std::string file_of(const std::vector<Sample>& samples) {
  return file_of(samples, spec_of_samples(samples));
}

template <typename T>
Tensor tensor(const std::vector<T>& values, Shape shape) {
  return Tensor::of(std::span<const T>(values), std::move(shape));
}

TEST(ArrowFileEncoderTest, EachDtypeHasItsType) {
  const std::pair<Tensor, const char*> values[] = {
      {Tensor::scalar(true), "6"},
      {Tensor::scalar(std::uint8_t{1}), "2 u8"},
      {Tensor::scalar(std::uint16_t{1}), "2 u16"},
      {Tensor::scalar(std::uint32_t{1}), "2 u32"},
      {Tensor::scalar(std::uint64_t{1}), "2 u64"},
      {Tensor::scalar(std::int8_t{1}), "2 i8"},
      {Tensor::scalar(std::int16_t{1}), "2 i16"},
      {Tensor::scalar(std::int32_t{1}), "2 i32"},
      {Tensor::scalar(std::int64_t{1}), "2 i64"},
      {Tensor::scalar(Half(1)), "3 0"},
      {Tensor::scalar(BFloat16(1)), "3 1"},
      {Tensor::scalar(1.0F), "3 1"},
      {Tensor::scalar(1.0), "3 2"},
      {Tensor::bytes("a"), "19"},
      {Tensor::bytes("a", Dtype::string), "20"},
  };
  for (const auto& [value, type] : values) {
    const std::string file = file_of({value});
    const ArrowFileView read(file);
    EXPECT_EQ(read.schema(), std::string("value: ") + type);
    EXPECT_EQ(read.rows(), 1U);
  }
}

TEST(ArrowFileEncoderTest, NumbersAreAsInMemory) {
  std::vector<Sample> samples;
  for (std::int32_t i = 0; i < 5; ++i)
    samples.push_back(Sample::dict(
        {{"half", Tensor::scalar(BFloat16(1.5F))}, {"id", Tensor::scalar(INT32_MAX - i)}}));
  const std::string file = file_of(samples);
  const ArrowFileView read(file);
  ASSERT_THAT(read.batches(), SizeIs(1));
  const ArrowBatchView& batch = read.batches()[0];
  EXPECT_THAT(batch.lengths, ElementsAre(5, 5));
  ASSERT_THAT(batch.buffers, SizeIs(4));
  EXPECT_THAT(batch.buffers[0], IsEmpty()) << "no null, so no bits that say so";
  EXPECT_THAT(batch.numbers<float>(1), Each(1.5F));
  EXPECT_THAT(batch.numbers<std::int32_t>(3),
              ElementsAre(INT32_MAX, INT32_MAX - 1, INT32_MAX - 2, INT32_MAX - 3, INT32_MAX - 4));
}

TEST(ArrowFileEncoderTest, BoolsAreBits) {
  std::vector<Sample> samples;
  for (int i = 0; i < 11; ++i) samples.emplace_back(Tensor::scalar(i % 3 == 0));
  const std::string file = file_of(samples);
  const ArrowFileView read(file);
  EXPECT_THAT(read.batches().at(0).numbers<std::uint8_t>(1), ElementsAre(0b01001001, 0b00000010));
}

TEST(ArrowFileEncoderTest, TensorsOfOneShapeAreListsOfOneSize) {
  const Sample sample = Sample::dict({{"x", tensor<std::int16_t>({1, 2, 3, 4, 5, 6}, {2, 3})}});
  const std::string file = file_of({sample, sample});
  const ArrowFileView read(file);
  EXPECT_EQ(read.schema(), "x: 16 2 <item: 16 3 <item: 2 i16>>");
  const ArrowBatchView& batch = read.batches().at(0);
  EXPECT_THAT(batch.lengths, ElementsAre(2, 4, 12));
  EXPECT_THAT(batch.numbers<std::int16_t>(3), ElementsAre(1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6));
}

TEST(ArrowFileEncoderTest, SizesThatDifferAreLists) {
  const auto rows = [](std::int64_t count) {
    return Sample::dict(
        {{"x", tensor(std::vector(static_cast<std::size_t>(count * 2), 0.5F), {count, 2})}});
  };
  const std::string file = file_of({rows(2), rows(0), rows(3)});
  const ArrowFileView read(file);
  EXPECT_EQ(read.schema(), "x: 21 <item: 16 2 <item: 3 1>>");
  const ArrowBatchView& batch = read.batches().at(0);
  EXPECT_THAT(batch.lengths, ElementsAre(3, 5, 10));
  EXPECT_THAT(batch.numbers<std::int64_t>(1), ElementsAre(0, 2, 2, 5));
  EXPECT_THAT(batch.numbers<float>(4), SizeIs(10));
}

TEST(ArrowFileEncoderTest, EverySizeMayDiffer) {
  const auto image = [](std::int64_t height, std::int64_t width) {
    return Sample(tensor(std::vector(static_cast<std::size_t>(height * width * 3), std::uint8_t{9}),
                         {height, width, 3}));
  };
  const std::string file = file_of({image(2, 4), image(1, 5), image(0, 7)});
  const ArrowFileView read(file);
  EXPECT_EQ(read.schema(), "value: 21 <item: 21 <item: 16 3 <item: 2 u8>>>");
  const ArrowBatchView& batch = read.batches().at(0);
  EXPECT_THAT(batch.lengths, ElementsAre(3, 3, 13, 39));
  EXPECT_THAT(batch.numbers<std::int64_t>(1), ElementsAre(0, 2, 3, 3));
  EXPECT_THAT(batch.numbers<std::int64_t>(3), ElementsAre(0, 4, 8, 13));
}

TEST(ArrowFileEncoderTest, TextsStandOneBehindTheOther) {
  const std::string file =
      file_of({Tensor::bytes("ab", Dtype::string), Tensor::bytes("", Dtype::string),
               Tensor::bytes("\u00e9", Dtype::string)});
  const ArrowFileView read(file);
  const ArrowBatchView& batch = read.batches().at(0);
  EXPECT_THAT(batch.numbers<std::int64_t>(1), ElementsAre(0, 2, 2, 4));
  EXPECT_EQ(batch.buffers.at(2), "ab\u00e9");
}

TEST(ArrowFileEncoderTest, NestedSamplesAreStructs) {
  const Sample sample =
      Sample::dict({{"meta", Sample::dict({{"\u00efd/1", Tensor::scalar(std::int64_t{7})},
                                           {"name", Tensor::bytes("n", Dtype::string)}})},
                    {"none", Sample::tuple({})},
                    {"pair", Sample::tuple({Tensor::scalar(1.5F), Tensor::scalar(true)})}});
  const std::string file = file_of({sample, sample});
  const ArrowFileView read(file);
  EXPECT_EQ(read.schema(),
            "meta: 13 <name: 20, \u00efd/1: 2 i64>, none: 13, pair: 13 <0: 3 1, 1: 6>");
  const ArrowBatchView& batch = read.batches().at(0);
  EXPECT_THAT(batch.lengths, ElementsAre(2, 2, 2, 2, 2, 2, 2));
  EXPECT_THAT(batch.numbers<std::int64_t>(5), ElementsAre(7, 7));
}

TEST(ArrowFileEncoderTest, BatchesEndByTheirRowsAndByTheirBytes) {
  std::vector<Sample> numbers;
  for (std::uint64_t i = 0; i < kArrowBatchRows * 2; ++i) numbers.emplace_back(Tensor::scalar(i));
  const std::string file = file_of(numbers);
  const ArrowFileView read(file);
  ASSERT_THAT(read.batches(), SizeIs(2)) << "and none without rows behind the last row";
  EXPECT_EQ(read.batches()[1].numbers<std::uint64_t>(1).front(), kArrowBatchRows);
  const Sample large = Tensor::bytes(std::string(kArrowBatchBytes / 2, 'x'));
  const std::string large_file = file_of({large, large, Tensor::bytes("small")});
  const ArrowFileView large_read(large_file);
  ASSERT_THAT(large_read.batches(), SizeIs(2));
  EXPECT_EQ(large_read.batches()[0].rows, 2U);
  const std::string huge_file = file_of({Tensor::bytes(std::string(kArrowBatchBytes * 3, 'x'))});
  EXPECT_EQ(ArrowFileView(huge_file).batches().at(0).buffers.at(2).size(), kArrowBatchBytes * 3);
}

TEST(ArrowFileEncoderTest, TheNextFileBeginsAnew) {
  ArrowFileEncoder encoder;
  encoder.set_spec(ElementSpec::single(Dtype::i64));
  std::string first;
  std::string second;
  for (std::string* file : {&first, &second}) {
    for (std::int64_t i = 0; i < 3000; ++i) encoder.append(*file, Tensor::scalar(i), 0);
    EXPECT_EQ(encoder.pending_bytes(), (3000 - 2 * kArrowBatchRows) * sizeof(std::int64_t));
    encoder.finish(*file);
  }
  EXPECT_EQ(first, second);
  EXPECT_EQ(ArrowFileView(first).rows(), 3000U);
}

TEST(ArrowFileEncoderTest, AFileMayHaveNoRowsOrNoColumns) {
  const std::string empty = file_of({}, ElementSpec::single(Dtype::f32, {kUnknown}));
  EXPECT_EQ(ArrowFileView(empty).schema(), "value: 21 <item: 3 1>");
  EXPECT_THAT(ArrowFileView(empty).batches(), IsEmpty());
  const std::string nothing = file_of({}, ElementSpec::none());
  EXPECT_THAT(ArrowFileView(nothing).schema(), IsEmpty());
  const std::string flat = file_of({tensor<float>({}, {3, 0}), tensor<float>({}, {3, 0})});
  EXPECT_THAT(ArrowFileView(flat).batches().at(0).lengths, ElementsAre(2, 6, 0));
}

TEST(ArrowFileEncoderTest, WhatDoesNotFitIsRefused) {
  ArrowFileEncoder encoder;
  const auto refuses = [](const ElementSpec& spec, const char* text) {
    EXPECT_THAT([&] { ArrowFileEncoder().set_spec(spec); },
                ThrowsMessage<ConfigError>(HasSubstr(text)));
  };
  refuses(ElementSpec::single(Dtype::u8, {std::int64_t{1} << 31}), "up to 2147483647 items");
  refuses(ElementSpec::dict({{"\xff", Dtype::u8, {}}}), "is not UTF-8");
  std::string file;
  EXPECT_THAT([&] { encoder.append(file, Sample(), 3); },
              ThrowsMessage<ConfigError>(HasSubstr("no fields")));
  encoder.set_spec(ElementSpec::single(Dtype::f32, {2}));
  EXPECT_THAT([&] { encoder.append(file, Tensor::of(std::vector{1.F}), 3); },
              ThrowsMessage<SampleError>(HasSubstr("sample 3 does not fit")));
  encoder.set_spec(ElementSpec::single(Dtype::string));
  EXPECT_THAT([&] { encoder.append(file, Tensor::bytes("\xff", Dtype::string), 3); },
              ThrowsMessage<SampleError>(HasSubstr("of sample 3 is not UTF-8")));
}

}  // namespace
}  // namespace penstock
