// Tensors by name in one file: the length of a header, the header as JSON ({name: {dtype, shape,
// data_offsets}}), then the bytes. The format of Python's safetensors package. tested in
// train/tests/checkpoint_test.cc
#include <fmt/format.h>
#include <penstock/error.h>
#include <penstock/train/checkpoint.h>

#include <array>
#include <bit>
#include <cstring>

#include "base/json.h"

namespace penstock::train {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr std::uint64_t kHeaderMax = 100'000'000;

struct Name {
  torch::Dtype dtype;
  const char* text;
};
constexpr std::array<Name, 9> kNames{{{torch::kFloat64, "F64"},
                                      {torch::kFloat32, "F32"},
                                      {torch::kFloat16, "F16"},
                                      {torch::kBFloat16, "BF16"},
                                      {torch::kInt64, "I64"},
                                      {torch::kInt32, "I32"},
                                      {torch::kInt16, "I16"},
                                      {torch::kUInt8, "U8"},
                                      {torch::kBool, "BOOL"}}};

[[noreturn]] void refuse(const std::string& what, const std::string& why) {
  throw StateError(fmt::format("{}: {}", what, why), {},
                   "the file is truncated, garbled or not a safetensors file");
}

/// A tensor without values may still claim dimensions of any length, of which torch computes
/// products.
void expect_sane(const std::string& what, const std::string& name,
                 const std::vector<std::int64_t>& shape) {
  constexpr std::size_t kSidesMax = 64;
  constexpr std::int64_t kProductMax = std::int64_t{1} << 56U;
  std::int64_t product = 1;
  for (const std::int64_t size : shape)
    if (__builtin_mul_overflow(product, std::max<std::int64_t>(1, size), &product) ||
        product > kProductMax)
      refuse(what, fmt::format("the shape of {} has impossible dimensions", name));
  if (shape.size() > kSidesMax)
    refuse(what, fmt::format("the shape of {} has {} dimensions", name, shape.size()));
}

torch::Tensor tensor_in(const std::string& what, const std::string& name, const Json& entry,
                        std::string_view data) {
  const auto dtype = entry.at("dtype").get<std::string>();
  const auto shape = whole_numbers<std::int64_t>(entry.at("shape"));
  const auto offsets = whole_numbers<std::uint64_t>(entry.at("data_offsets"));
  const auto* const known =
      std::ranges::find_if(kNames, [&](const Name& n) { return n.text == dtype; });
  if (known == kNames.end()) refuse(what, fmt::format("{} has unknown dtype {}", name, dtype));
  if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > data.size())
    refuse(what, fmt::format("{} is outside the file", name));
  expect_sane(what, name, shape);
  std::uint64_t bytes = c10::elementSize(known->dtype);
  for (const std::int64_t size : shape) {
    if (size < 0 || (size > 0 && bytes > data.size() / static_cast<std::uint64_t>(size)))
      refuse(what, fmt::format("{} is larger than the file", name));
    bytes *= static_cast<std::uint64_t>(size);
  }
  if (bytes != offsets[1] - offsets[0])
    refuse(what, fmt::format("{} has {} bytes, its shape needs {}", name, offsets[1] - offsets[0],
                             bytes));
  torch::Tensor tensor = torch::empty(shape, known->dtype);
  if (bytes > 0) std::memcpy(tensor.data_ptr(), data.data() + offsets[0], bytes);
  return tensor;
}

}  // namespace

std::string encode_tensors(const NamedTensors& tensors) {
  Json header = Json::object();
  std::vector<torch::Tensor> kept;
  std::uint64_t at = 0;
  for (const auto& [name, value] : tensors) {
    kept.push_back(value.detach().cpu().contiguous());
    const torch::Tensor& tensor = kept.back();
    const auto* const known = std::ranges::find_if(
        kNames, [&](const Name& n) { return n.dtype == tensor.scalar_type(); });
    if (known == kNames.end())
      throw ConfigError(fmt::format("{}: a tensor of {} cannot be saved", name,
                                    c10::toString(tensor.scalar_type())));
    header[name] = {{"dtype", known->text},
                    {"shape", tensor.sizes().vec()},
                    {"data_offsets", {at, at + tensor.nbytes()}}};
    at += tensor.nbytes();
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // data aligned to 8
  const std::uint64_t length = text.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  bytes += text;
  bytes.reserve(bytes.size() + at);
  for (const torch::Tensor& tensor : kept)
    bytes.append(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes());
  return bytes;
}

NamedTensors decode_tensors(const std::string& what, std::string_view bytes) {
  std::uint64_t length = 0;
  if (bytes.size() < sizeof length) refuse(what, "it has no header");
  std::memcpy(&length, bytes.data(), sizeof length);
  bytes.remove_prefix(sizeof length);
  if (length > kHeaderMax || length > bytes.size()) refuse(what, "its header is truncated");
  const auto header = parse_json(bytes.substr(0, length));
  if (!header || !header->is_object()) refuse(what, "its header is not a JSON object");
  const std::string_view data = bytes.substr(length);
  NamedTensors tensors;
  try {
    for (const auto& [name, entry] : header->items())
      if (name != "__metadata__") tensors.emplace_back(name, tensor_in(what, name, entry, data));
  } catch (const Json::exception& error) {
    refuse(what, error.what());
  }
  return tensors;
}

}  // namespace penstock::train
