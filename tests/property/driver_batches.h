#pragma once
// The batches of the property test's driver as JSON: rows, and how each field is stored.
#include <penstock/penstock.h>

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/json.h"

namespace penstock {

/// Values `first`, `first + 1`, ... of a tensor of that shape, as nested lists.
template <typename T>
Json nested_json(const T* first, std::span<const std::int64_t> shape) {
  if (shape.empty()) return *first;
  const std::size_t stride = shape_values({shape.begin() + 1, shape.end()});
  Json rows = Json::array();
  for (std::int64_t i = 0; i < shape.front(); ++i)
    rows.push_back(nested_json(first + static_cast<std::size_t>(i) * stride, shape.subspan(1)));
  return rows;
}

inline Json value_json(const Tensor& leaf) {
  if (is_variable(leaf.dtype())) {
    std::string hex;
    for (const std::byte byte : leaf.raw())
      hex += fmt::format("{:02x}", static_cast<unsigned>(byte));
    return hex;
  }
  const auto numbers = [&]<typename T>(T) {
    return nested_json(leaf.values<T>().data(), leaf.shape());
  };
  if (leaf.dtype() == Dtype::i64) return numbers(std::int64_t{});
  if (leaf.dtype() == Dtype::i32) return numbers(std::int32_t{});
  return numbers(float{});
}

/// Throws if a view of a whole field and its rows are not the same bytes.
inline void expect_row(const Tensor& view, std::int64_t first, std::int64_t last,
                       const Tensor& row) {
  const auto all = static_cast<std::size_t>(std::max<std::int64_t>(1, view.shape().front()));
  const std::size_t unit = view.raw().size() / all;
  const auto expected = view.raw().subspan(static_cast<std::size_t>(first) * unit,
                                           static_cast<std::size_t>(last - first) * unit);
  if (!std::ranges::equal(expected, row.raw()))
    throw InternalError("a row differs from the same row of the whole field");
}

/// How an array or a text is stored, and whether that agrees with its rows.
inline Json form_json(const Batch& batch, const std::vector<Sample>& rows, std::size_t field) {
  const FieldSpec& spec = batch.spec().fields[field];
  const std::string& path = spec.path;
  const auto leaf = [&](std::size_t row) { return rows[row].leaves()[field]; };
  Json json{{"lengths", Json::array()}};
  if (!is_variable(spec.dtype)) json["lengths"] = batch.lengths(path);
  if (!batch.is_ragged(path)) {
    const Tensor tensor = batch[path];
    for (std::size_t row = 0; row < batch.rows(); ++row) {
      const auto at = static_cast<std::int64_t>(row);
      expect_row(tensor, at, at + 1, leaf(row));
    }
    json["shape"] = tensor.shape();
    return json;
  }
  const Ragged ragged = batch.ragged(path);
  for (std::size_t row = 0; row < batch.rows(); ++row)
    expect_row(ragged.values, ragged.offsets[row], ragged.offsets[row + 1], leaf(row));
  json["shape"] = ragged.values.shape();
  json["offsets"] = std::vector<std::int64_t>(ragged.offsets.begin(), ragged.offsets.end());
  return json;
}

inline Json share_json(const Batch& batch) {
  Json fields = Json::object();
  Json forms = Json::object();
  std::vector<Sample> rows;
  for (std::size_t row = 0; row < batch.rows(); ++row) rows.push_back(batch.row(row));
  for (std::size_t i = 0; i < batch.spec().fields.size(); ++i) {
    const FieldSpec& spec = batch.spec().fields[i];
    Json values = Json::array();
    for (const Sample& row : rows) values.push_back(value_json(row.leaves()[i]));
    fields[spec.path] = std::move(values);
    if (is_variable(spec.dtype) || !spec.shape.empty())
      forms[spec.path] = form_json(batch, rows, i);
  }
  return {{"ids", std::vector<std::uint64_t>(batch.sample_id().begin(), batch.sample_id().end())},
          {"loss_scale", batch.loss_scale()},
          {"weight", std::vector<float>(batch.weight().begin(), batch.weight().end())},
          {"valid", std::vector<int>(batch.valid().begin(), batch.valid().end())},
          {"global_valid", batch.global_valid()},
          {"fields", fields},
          {"forms", forms}};
}

}  // namespace penstock
