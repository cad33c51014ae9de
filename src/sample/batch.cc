#include "penstock/batch.h"

#include <fmt/format.h>

#include <utility>

#include "penstock/error.h"
#include "sample/batch_data.h"
#include "sample/rows.h"

namespace penstock {
namespace {

std::size_t field_at(const ElementSpec& spec, std::string_view path) {
  const auto index = spec.find(path);
  if (!index) throw ConfigError(fmt::format("no field \"{}\" in a batch of {}", path, spec.text()));
  return *index;
}

}  // namespace

std::size_t Batch::rows() const {
  return data_->facts().all_rows();
}
const ElementSpec& Batch::spec() const {
  return data_->spec();
}
std::uint64_t Batch::epoch() const {
  return data_->facts().epoch;
}
std::uint64_t Batch::step() const {
  return data_->facts().step;
}
std::uint32_t Batch::share() const {
  return data_->facts().share;
}
std::uint64_t Batch::valid_count() const {
  return data_->valid_count();
}
std::uint64_t Batch::global_valid() const {
  return data_->facts().step_rows;
}
std::size_t Batch::bytes() const {
  return data_->bytes();
}
void Batch::set_fence(Fence fence) const {
  data_->set_fence(std::move(fence));
}

Tensor Batch::operator[](std::string_view path) const {
  const std::size_t index = field_at(spec(), path);
  const FieldSpec& field = spec().fields[index];
  const BatchLayout& layout = data_->layout();
  const PackedField* const packed = data_->packed(index);
  if (packed != nullptr && !packed->row_shape)
    throw ConfigError(
        fmt::format("the rows of field \"{}\" ({}) differ in size", path, field.text()), {},
        "use ragged(path) or row(i), or form the batch with padded_batch()");
  Shape shape = packed != nullptr ? *packed->row_shape : field.shape;
  shape.insert(shape.begin(), static_cast<std::int64_t>(rows()));
  if (packed != nullptr) return Tensor::view(field.dtype, std::move(shape), packed->values, data_);
  return Tensor::view(
      field.dtype, std::move(shape),
      {data_->at(layout.field_offset[index]), rows() * layout.field_row_bytes[index]}, data_);
}

bool Batch::is_ragged(std::string_view path) const {
  const PackedField* const packed = data_->packed(field_at(spec(), path));
  return packed != nullptr && !packed->row_shape;
}

Ragged Batch::ragged(std::string_view path) const {
  const std::size_t index = field_at(spec(), path);
  const FieldSpec& field = spec().fields[index];
  const PackedField* const packed = data_->packed(index);
  if (packed == nullptr)
    throw ConfigError(fmt::format("field \"{}\" is dense: use [] for it", path));
  Shape shape{packed->offsets.back()};
  Dtype dtype = field.dtype;
  if (is_variable(dtype)) {
    dtype = Dtype::u8;  // one tensor of all characters
  } else if (packed->row_shape && packed->offsets.back() == static_cast<std::int64_t>(rows())) {
    shape.insert(shape.end(), packed->row_shape->begin(), packed->row_shape->end());
  } else if (packed->shapes.empty()) {
    shape.insert(shape.end(), field.shape.begin() + 1, field.shape.end());
  }
  return {Tensor::view(dtype, std::move(shape), packed->values, data_), packed->offsets,
          packed->lengths, packed->shapes};
}

std::vector<std::int64_t> Batch::lengths(std::string_view path) const {
  const std::size_t index = field_at(spec(), path);
  const FieldSpec& field = spec().fields[index];
  if (is_variable(field.dtype) || field.shape.empty())
    throw ConfigError(
        fmt::format("the rows of field \"{}\" ({}) have no length", path, field.text()));
  if (const PackedField* const packed = data_->packed(index)) return packed->lengths;
  return std::vector<std::int64_t>(rows(), field.shape.front());
}

Sample Batch::row(std::size_t index) const {
  if (index >= rows())
    throw ConfigError(fmt::format("row {} of a batch of {} rows", index, rows()));
  std::vector<Tensor> leaves;
  for (std::size_t i = 0; i < spec().fields.size(); ++i) {
    const FieldSpec& field = spec().fields[i];
    const std::size_t size = data_->layout().field_row_bytes[i];
    if (const PackedField* const packed = data_->packed(i)) {
      leaves.push_back(
          Tensor::view(field.dtype, packed->shape_of(index, field), packed->row(index), data_));
    } else if (size > 0) {
      const std::byte* const start = data_->at(data_->layout().field_offset[i]) + index * size;
      leaves.push_back(Tensor::view(field.dtype, field.shape, {start, size}, data_));
    } else {
      leaves.push_back(Tensor::copy(field.dtype, field.shape, {}));
    }
  }
  return Sample::assemble(spec().structure, std::move(leaves));
}

std::span<const std::uint64_t> Batch::sample_id() const {
  return {reinterpret_cast<const std::uint64_t*>(data_->at(data_->layout().sample_id_offset)),
          rows()};
}
std::span<const std::uint8_t> Batch::valid() const {
  return {reinterpret_cast<const std::uint8_t*>(data_->at(data_->layout().valid_offset)), rows()};
}
std::span<const float> Batch::weight() const {
  return {reinterpret_cast<const float*>(data_->at(data_->layout().weight_offset)), rows()};
}

double Batch::loss_scale() const {
  const ShareFacts& facts = data_->facts();
  // Weights are floats; the fraction lost by rounding is compensated here, so that both are exact.
  const double weight = facts.weight().value();
  const double rounding = weight > 0 ? weight / static_cast<double>(static_cast<float>(weight)) : 1;
  return facts.loss_scale().value() * rounding;
}

}  // namespace penstock
