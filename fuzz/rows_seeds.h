#pragma once
// The files of a small folder of rows, for the rows target; the first byte is its choice.
#include <string>
#include <string_view>
#include <utility>

#include "fuzz/image_seeds.h"
#include "sample/rows.h"
#include "store/row_file.h"
#include "store/row_format.h"
#include "store/rows_header.h"

namespace penstock::fuzz {

/// The frames of three rows of this spec.
inline std::string row_frames(const ElementSpec& spec) {
  std::string text;
  for (std::int32_t number = 0; number < 3; ++number) {
    const std::vector<std::int32_t> pairs(static_cast<std::size_t>(number) * 2, number);
    const Sample sample =
        Sample::dict({{"a", Tensor::of(std::vector<std::uint8_t>{1, 2, 3})},
                      {"b", Tensor::of(std::span<const std::int32_t>(pairs), {number, 2})},
                      {"c", Tensor::bytes("text", Dtype::string)}});
    Scratch scratch;
    const ScratchBlock block(spec, 1, scratch);
    if (write_row(block.view(), 0, sample)) return {};
    block.view().identity.sample_id[0] = 5;
    block.view().identity.occurrence[0] = 0;
    RowFrames frames;
    (void)RowCodec(spec).encode(block.view(), 0, static_cast<std::uint64_t>(number), 7, frames);
    for (const std::string_view part : frames.parts) text += part;
  }
  return text;
}

inline Seeds rows_seeds() {
  Seeds seeds;
  const auto add = [&seeds](const std::string& name, char choice, std::string text) {
    text.insert(text.begin(), choice);
    seeds.push_back({"rows", name, Values(text.begin(), text.end())});
  };
  const ElementSpec spec = ElementSpec::dict(
      {{"a", Dtype::u8, {3}}, {"b", Dtype::i32, {kUnknown, 2}}, {"c", Dtype::string, {}}});
  RowsHeader header;
  header.data = {{"1234", "5678"}, ElementSpec::tuple({spec, ElementSpec::single(Dtype::f32)})};
  header.rows = 3;
  add("header", 0, header.text());
  header.data.spec = ElementSpec::unknown();
  header.rows.reset();
  add("header_unknown", 0, header.text());
  const std::string frames = row_frames(spec);
  const std::string samples = row_frames(ElementSpec::unknown());
  add("file", 1, frames);
  add("file_unknown", 1, samples);
  std::string index = row_file_index_text({{7, 1}, 400, {{0, 32, 10}, {1, 88, 20}, {2, 152, 8}}});
  index.resize(index.size() - 4);  // the target adds the checksum
  add("index", 2, index);
  const auto payload_at = [](const std::string& text, std::size_t offset) {
    return text.substr(offset + kRowHeaderBytes,
                       parse_row_header(std::string_view(text).substr(offset), 7)->payload_bytes);
  };
  add("sample", 3, payload_at(samples, 0));
  const std::string first = payload_at(frames, 0);
  add("row_empty", 4, first);
  add("row", 4, payload_at(frames, frame_bytes(first.size())));
  return seeds;
}

}  // namespace penstock::fuzz
