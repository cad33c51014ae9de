#include "record/example_encode.h"

#include <fmt/format.h>

#include <string_view>
#include <type_traits>
#include <utility>

#include "base/printable.h"
#include "penstock/error.h"
#include "record/example_wire.h"
#include "sample/with_type.h"

namespace penstock {
namespace {

void append_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

std::size_t varint_bytes(std::uint64_t value) {
  std::size_t bytes = 1;
  for (; value >= 0x80; value >>= 7) ++bytes;
  return bytes;
}

/// The beginning of a field that is bytes or a message.
void append_head(std::string& out, std::uint32_t number, std::size_t bytes) {
  constexpr std::uint32_t kBytes = 2;
  append_varint(out, number << 3 | kBytes);
  append_varint(out, bytes);
}

void append_field(std::string& out, std::uint32_t number, std::string_view bytes) {
  append_head(out, number, bytes.size());
  out += bytes;
}

template <typename T>
std::string packed_floats(const Tensor& tensor) {
  std::string out;
  out.reserve(tensor.values<T>().size() * sizeof(float));
  for (const T value : tensor.values<T>()) {
    const auto single = static_cast<float>(value);
    out.append(reinterpret_cast<const char*>(&single), sizeof single);
  }
  return out;
}

template <typename T>
std::string packed_ints(const std::string& path, const Tensor& tensor) {
  std::string out;
  for (const T value : tensor.values<T>()) {
    if (!std::is_same_v<T, bool> && std::is_unsigned_v<T> &&
        static_cast<std::uint64_t>(value) > INT64_MAX) {
      Where where;
      where.field = path;
      throw SampleError(
          fmt::format("the value {} does not fit int64, which tf.train.Example stores",
                      static_cast<std::uint64_t>(value)),
          where, "cast the field to i64, or store its bytes");
    }
    append_varint(out, static_cast<std::uint64_t>(static_cast<std::int64_t>(value)));
  }
  return out;
}

/// The values of a list, all in one piece.
std::pair<ListKind, std::string> list_of(const std::string& path, const Tensor& tensor) {
  using List = std::pair<ListKind, std::string>;
  return with_type(tensor.dtype(), [&](auto example) -> List {
    using T = decltype(example);
    if constexpr (std::is_same_v<T, NoType>) {
      return {ListKind::bytes, std::string(tensor.text())};
    } else if constexpr (std::is_same_v<T, double>) {
      throw ConfigError(
          fmt::format("field \"{}\" is f64, but tf.train.Example stores floats of 32 bits",
                      printable(path)),
          {}, "cast the field to f32, or store its bytes");
    } else if constexpr (std::is_integral_v<T>) {
      return {ListKind::ints, packed_ints<T>(path, tensor)};
    } else {
      return {ListKind::floats, packed_floats<T>(tensor)};
    }
  });
}

}  // namespace

std::string encode_example(const Sample& sample) {
  std::string features;
  const auto paths = sample.structure().paths();
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const std::string name = paths[i].empty() ? "value" : paths[i];
    const Tensor& leaf = sample.leaves()[i];
    if (leaf.empty()) throw ConfigError(fmt::format("field \"{}\" has no tensor", printable(name)));
    const auto [kind, values] = list_of(name, leaf);
    std::string list;  // a list without values has no field, a text without letters has one
    if (!values.empty() || kind == ListKind::bytes) append_field(list, 1, values);
    std::string feature;
    append_field(feature, static_cast<std::uint32_t>(kind), list);
    append_head(features, 1,
                2 + varint_bytes(name.size()) + name.size() + varint_bytes(feature.size()) +
                    feature.size());
    append_field(features, 1, name);
    append_field(features, 2, feature);
  }
  std::string example;
  append_field(example, 1, features);
  return example;
}

}  // namespace penstock
