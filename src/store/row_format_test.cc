#include "store/row_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/crc32c.h"
#include "sample/rows.h"

namespace penstock {
namespace {

Sample mixed(std::int64_t x) {
  std::vector<std::int16_t> ragged(static_cast<std::size_t>(x % 5));
  for (std::size_t i = 0; i < ragged.size(); ++i) ragged[i] = static_cast<std::int16_t>(x + 1);
  return Sample::dict({{"flag", Tensor::scalar(static_cast<std::uint8_t>(x))},
                       {"id", Tensor::scalar(x)},
                       {"ragged", Tensor::of(ragged)},
                       {"text", Tensor::bytes(std::string(static_cast<std::size_t>(x), 'x'))}});
}

ElementSpec mixed_spec() {
  ElementSpec spec = ElementSpec::of(mixed(3));
  spec.fields[2].shape = {kUnknown};
  return spec;
}

std::string bytes_of(const RowFrames& frames) {
  std::string text;
  for (const std::string_view part : frames.parts) text += part;
  return text;
}

std::string text_of(const Sample& sample) {
  std::string text;
  for (const Tensor& leaf : sample.leaves())
    text += ElementSpec::of(leaf).text() + ":" + std::string(leaf.text()) + "|";
  return text;
}

/// The frame of one row.
std::string frame_of(const ElementSpec& spec, const Sample& sample, std::uint64_t number) {
  Scratch scratch;
  const ScratchBlock block(spec, 1, scratch);
  EXPECT_FALSE(write_row(block.view(), 0, sample));
  block.view().identity.sample_id[0] = number + 100;
  block.view().identity.occurrence[0] = number + 7;
  RowFrames frames;
  const auto bytes = RowCodec(spec).encode(block.view(), 0, number, 99, frames);
  EXPECT_TRUE(bytes);
  EXPECT_EQ(frames.bytes, frame_bytes(*bytes));
  return bytes_of(frames);
}

/// The payload in memory of its own, aligned, and exactly as long.
std::shared_ptr<std::byte[]> aligned(std::string_view payload) {
  auto memory = std::make_shared<std::byte[]>(payload.size() + 1);
  if (!payload.empty()) std::memcpy(memory.get(), payload.data(), payload.size());
  return memory;
}

bool decodes(const ElementSpec& spec, std::string_view payload, Sample* sample = nullptr) {
  Scratch scratch;
  const ScratchBlock block(spec, 1, scratch);
  const auto memory = aligned(payload);
  const std::string_view bytes(reinterpret_cast<const char*>(memory.get()), payload.size());
  if (!RowCodec(spec).decode(bytes, memory, block.view(), 0)) return false;
  if (sample == nullptr) return true;
  const Sample row = read_row(block.view(), 0);
  std::vector<Tensor> leaves;
  for (const Tensor& leaf : row.leaves()) leaves.push_back(leaf.kept());
  *sample = Sample::assemble(row.structure(), std::move(leaves));
  return true;
}

TEST(RowFormatTest, ARowIsDecodedAsItWasWritten) {
  for (const ElementSpec& spec : {mixed_spec(), ElementSpec::unknown()}) {
    for (std::int64_t x = 0; x < 20; ++x) {
      const std::string frame = frame_of(spec, mixed(x), 5);
      EXPECT_EQ(frame.size() % 8, 0U);
      const auto header = parse_row_header(frame, 99);
      ASSERT_TRUE(header);
      EXPECT_EQ(header->number, 5U);
      EXPECT_EQ(header->sample_id, 105U);
      EXPECT_EQ(header->occurrence, 12U);
      const std::string payload = frame.substr(kRowHeaderBytes, header->payload_bytes);
      EXPECT_EQ(header->payload_crc, crc32c(payload));
      Sample back;
      ASSERT_TRUE(decodes(spec, payload, &back));
      EXPECT_EQ(text_of(back), text_of(mixed(x)));
      EXPECT_EQ(back.structure(), mixed(x).structure());
    }
  }
}

TEST(RowFormatTest, NestedSamplesOfUnknownSpecKeepTheirStructure) {
  const Sample nested = Sample::tuple(
      {Sample::dict({{"a", Tensor::scalar(1.5)}, {"b", Sample::tuple({Tensor::bytes("")})}}),
       Tensor::of(std::vector<double>{})});
  const std::string frame = frame_of(ElementSpec::unknown(), nested, 1);
  const auto header = parse_row_header(frame, 99);
  Sample back;
  ASSERT_TRUE(
      decodes(ElementSpec::unknown(), frame.substr(kRowHeaderBytes, header->payload_bytes), &back));
  EXPECT_EQ(back.structure(), nested.structure());
  EXPECT_EQ(text_of(back), text_of(nested));
}

TEST(RowFormatTest, OnlyDenseFieldsHaveAFixedNumberOfBytes) {
  EXPECT_EQ(RowCodec(ElementSpec::of(mixed(0).leaves()[1])).fixed_bytes(), 8U);
  EXPECT_EQ(RowCodec(ElementSpec::none()).fixed_bytes(), 0U);
  EXPECT_FALSE(RowCodec(mixed_spec()).fixed_bytes());
  EXPECT_FALSE(RowCodec(ElementSpec::unknown()).fixed_bytes());
}

TEST(RowFormatTest, EveryChangedByteOfAHeaderIsNoticed) {
  const std::string frame = frame_of(mixed_spec(), mixed(3), 5);
  EXPECT_FALSE(parse_row_header(frame, 98)) << "a frame of another file";
  for (std::size_t i = 0; i < kRowHeaderBytes; ++i)
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = frame;
      changed[i] = static_cast<char>(changed[i] ^ (1 << bit));
      EXPECT_FALSE(parse_row_header(changed, 99)) << i;
    }
  EXPECT_FALSE(parse_row_header(frame.substr(0, kRowHeaderBytes - 1), 99));
}

TEST(RowFormatTest, AnyOtherPayloadIsRefusedOrDecodedWithinItsBytes) {
  for (const ElementSpec& spec : {mixed_spec(), ElementSpec::unknown()}) {
    const std::string frame = frame_of(spec, mixed(3), 5);
    const auto header = parse_row_header(frame, 99);
    const std::string payload = frame.substr(kRowHeaderBytes, header->payload_bytes);
    for (std::size_t size = 0; size < payload.size(); ++size)
      EXPECT_FALSE(decodes(spec, payload.substr(0, size))) << size;
    EXPECT_FALSE(decodes(spec, payload + "x"));
    for (std::size_t i = 0; i < payload.size(); ++i)
      for (const char value : {'\0', '\x01', '\x7f', '\xff'}) {
        std::string changed = payload;
        changed[i] = value;
        Sample back;
        if (decodes(spec, changed, &back)) (void)text_of(back);
      }
  }
}

TEST(RowFormatTest, TheStartOfAFileIsChecked) {
  const std::string start = row_file_start({17, 18});
  ASSERT_EQ(start.size(), kRowFileStartBytes);
  const auto parsed = parse_row_file_start(start);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->salt, 17U);
  EXPECT_EQ(parsed->data, 18U);
  for (std::size_t i = 0; i < 28; ++i) {
    std::string changed = start;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_FALSE(parse_row_file_start(changed)) << i;
  }
  EXPECT_FALSE(parse_row_file_start(start.substr(0, kRowFileStartBytes - 1)));
}

}  // namespace
}  // namespace penstock
