#pragma once
// Elements of different lengths in the property test's driver: sources, maps, padding, buckets and
// packing. Their definition is in tests/property/fields.py and packing.py.
#include <penstock/penstock.h>

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "driver_elements.h"

namespace penstock {

inline Dataset ragged_source(const Json& node) {
  const std::string op = node.at("op");
  const RaggedElements elements(node);
  const auto size = node.at("size").get<std::int64_t>();
  if (op == "ragged") {
    SourceOptions options;
    if (node.at("declared")) options.spec = RaggedElements::spec(op);
    return Dataset::from_index(
        static_cast<std::uint64_t>(size),
        [elements](std::uint64_t i) { return elements.ragged(static_cast<std::int64_t>(i)); },
        options);
  }
  std::vector<std::int64_t> offsets{0};
  std::vector<std::int32_t> tokens;
  std::vector<std::int64_t> pairs;
  for (std::int64_t i = 0; i < size; ++i) {
    const auto row = elements.tokens(i);
    const auto wide = elements.pairs(i, elements.length(i));
    tokens.insert(tokens.end(), row.begin(), row.end());
    pairs.insert(pairs.end(), wide.begin(), wide.end());
    offsets.push_back(static_cast<std::int64_t>(tokens.size()));
  }
  if (op == "tokens") return Dataset::from_ragged(Tensor::of(tokens), Tensor::of(offsets));
  return Dataset::from_ragged(Tensor::of(std::span<const std::int64_t>(pairs), {offsets.back(), 2}),
                              Tensor::of(offsets));
}

template <typename T>
Tensor resized(const Tensor& leaf, std::int64_t length) {
  const std::int64_t rows = leaf.shape().front();
  const std::size_t unit = shape_values({leaf.shape().begin() + 1, leaf.shape().end()});
  std::vector<T> values;
  for (std::int64_t i = 0; i < length; ++i)
    for (std::size_t j = 0; j < unit; ++j)
      values.push_back(rows == 0 ? T{0}
                                 : leaf.values<T>()[static_cast<std::size_t>(i % rows) * unit + j]);
  Shape shape = leaf.shape();
  shape.front() = length;
  return Tensor::of(std::span<const T>(values), std::move(shape));
}

/// Gives every array of integers another length.
inline Dataset resize_map(const Dataset& in, std::int64_t most, const MapOptions& options) {
  return in.map(
      [most](const Sample& sample) {
        const std::int64_t length = rest_of(total(sample), most);
        std::vector<Tensor> leaves;
        for (const Tensor& leaf : sample.leaves()) {
          const bool array = !leaf.shape().empty();
          if (array && leaf.dtype() == Dtype::i64) {
            leaves.push_back(resized<std::int64_t>(leaf, length));
          } else if (array && leaf.dtype() == Dtype::i32) {
            leaves.push_back(resized<std::int32_t>(leaf, length));
          } else {
            leaves.push_back(leaf);
          }
        }
        return Sample::assemble(sample.structure(), std::move(leaves));
      },
      options);
}

inline FieldPadding field_padding_of(const Json& rule) {
  FieldPadding padding;
  padding.value = rule.at("value");
  padding.side = rule.at("side") == "left" ? PadSide::left : PadSide::right;
  if (rule.contains("length")) padding.length = rule["length"].get<std::int64_t>();
  padding.multiple_of = rule.at("multiple_of");
  return padding;
}

inline Padding padding_of(const Json& node) {
  Padding padding;
  padding.only_named = node.at("all").is_null();
  if (!padding.only_named) padding.all = field_padding_of(node["all"]);
  for (const auto& [path, rule] : node.at("fields").items())
    padding.fields.emplace_back(path, field_padding_of(rule));
  return padding;
}

inline Dataset bucketed(const Dataset& in, const Json& node, std::optional<Tail> tail) {
  BucketOptions options;
  options.field = node.at("field");
  options.tail = tail;
  options.padding.reset();
  if (!node.at("padding").is_null()) options.padding = padding_of(node["padding"]);
  const std::vector<std::int64_t> boundaries = node.at("boundaries");
  if (node.contains("max_tokens"))
    return in.batch_by_tokens(node["max_tokens"].get<std::int64_t>(), options, boundaries);
  return in.bucket_by_length(boundaries, node.at("batch_sizes"), options);
}

inline Dataset packed(const Dataset& in, const Json& node) {
  PackOptions options;
  const std::string too_long = node.at("too_long");
  options.how = node.at("how") == "stream" ? PackHow::stream : PackHow::best_fit;
  options.too_long = too_long == "split" ? LongDocument::split
                     : too_long == "cut" ? LongDocument::cut
                                         : LongDocument::drop;
  if (!node.at("separator").is_null()) options.separator = node["separator"].get<std::int64_t>();
  options.pad = node.at("pad");
  options.field = node.at("field");
  options.mask = node.at("mask_field");
  options.with_cu_seqlens = node.at("cu_seqlens");
  return in.pack(node.at("length").get<std::int64_t>(), options);
}

}  // namespace penstock
