// tested in src/verb/bucket_test.cc
#include "verb/row_lengths.h"

#include <fmt/format.h>

#include <utility>

#include "op/op.h"
#include "penstock/error.h"

namespace penstock {

void refuse_measure(const LengthRule& rule) {
  if (rule.measure)
    throw ConfigError("bucket_by_length: a function that returns the length cannot be sent", {},
                      "name a field instead: its first size is the length");
}

StagePtr measured_stage(StagePtr samples, const LengthRule& rule, std::uint64_t random_ops) {
  if (!rule.measure) return samples;
  return map_stage(std::move(samples), rule.measure, ElementSpec::single(Dtype::i64),
                   {"length", 0, random_ops});
}

namespace {

Failure no_field(const std::string& field, const ElementSpec& spec, std::size_t row) {
  return {fmt::format("no field \"{}\" in {}", field, spec.text()),
          {},
          "name the field whose first size is the length",
          nullptr,
          row};
}

}  // namespace

void check_length_field(const char* word, const LengthRule& rule, const ElementSpec& spec) {
  if (rule.measure || !spec.known) return;
  const auto index = spec.find(rule.field);
  if (!index) {
    const Failure failure = no_field(rule.field, spec, 0);
    throw ConfigError(fmt::format("{}: {}", word, failure.message), {}, failure.remedy);
  }
  const FieldSpec& field = spec.fields[*index];
  if (!is_variable(field.dtype) && field.shape.empty())
    throw ConfigError(
        fmt::format("{}: field \"{}\" ({}) has no length", word, rule.field, field.text()), {},
        "name a field with one dimension or more");
}

RowLengths::RowLengths(const BlockView& rows, const LengthRule& rule) : rows_(rows), rule_(rule) {
  if (rows_.samples == nullptr && !rule.measure) index_ = rows_.spec->find(rule.field);
}

Result<std::uint32_t> RowLengths::operator[](std::size_t row) const {
  if (rule_.measure) return measured(row);
  const Tensor* tensor = nullptr;
  if (rows_.samples != nullptr) {
    const Sample& sample = rows_.samples[row];
    const ElementSpec spec = ElementSpec::of(sample);
    const auto index = spec.find(rule_.field);
    if (!index) return no_field(rule_.field, spec, row);
    tensor = &sample.leaves()[*index];
  } else if (!index_) {
    return no_field(rule_.field, *rows_.spec, row);
  } else if (!rows_.columns[*index_].dense()) {
    tensor = rows_.columns[*index_].tensors + row;
  }
  const FieldSpec* const field = rows_.samples == nullptr ? &rows_.spec->fields[*index_] : nullptr;
  const Dtype dtype = tensor != nullptr ? tensor->dtype() : field->dtype;
  const Shape& shape = tensor != nullptr ? tensor->shape() : field->shape;
  if (is_variable(dtype)) return static_cast<std::uint32_t>(tensor->raw().size());
  if (shape.empty() || shape.front() > UINT32_MAX)
    return Failure{fmt::format("field \"{}\" is {}{}, which has no length", rule_.field,
                               dtype_name(dtype), shape_text(shape)),
                   {},
                   "name a field with one dimension or more",
                   nullptr,
                   row};
  return static_cast<std::uint32_t>(shape.front());
}

Result<std::uint32_t> RowLengths::measured(std::size_t row) const {
  const std::int64_t length =
      reinterpret_cast<const std::int64_t*>(rows_.columns.front().data)[row];
  if (length >= 0 && length <= UINT32_MAX) return static_cast<std::uint32_t>(length);
  return Failure{fmt::format("the function returned the length {}", length),
                 {},
                 fmt::format("return a number from 0 to {}", UINT32_MAX),
                 nullptr,
                 row};
}

}  // namespace penstock
