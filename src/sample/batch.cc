#include "penstock/batch.h"

#include <fmt/format.h>

#include <optional>
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
  return data_->layout().spec;
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
  if (is_variable(field.dtype) || !shape_known(field.shape))
    throw ConfigError(
        fmt::format("the rows of field \"{}\" ({}) differ in size", path, field.text()), {},
        "use ragged(path) or row(i)");
  Shape shape{static_cast<std::int64_t>(rows())};
  shape.insert(shape.end(), field.shape.begin(), field.shape.end());
  return Tensor::view(
      field.dtype, std::move(shape),
      {data_->at(layout.field_offset[index]), rows() * layout.field_row_bytes[index]}, data_);
}

Ragged Batch::ragged(std::string_view path) const {
  return data_->ragged(field_at(spec(), path));
}

namespace {

/// The shape of a row of `bytes` bytes if one size is unknown; nullopt if more are.
std::optional<Shape> shape_of_row(const FieldSpec& field, std::size_t bytes) {
  Shape shape = field.shape;
  std::int64_t* open = nullptr;
  std::size_t rest = dtype_size(field.dtype);
  for (std::int64_t& size : shape) {
    if (size != kUnknown) {
      rest *= static_cast<std::size_t>(size);
    } else if (std::exchange(open, &size) != nullptr) {
      return std::nullopt;
    }
  }
  if (open != nullptr) *open = rest == 0 ? 0 : static_cast<std::int64_t>(bytes / rest);
  return shape;
}

}  // namespace

Sample Batch::row(std::size_t index) const {
  if (index >= rows())
    throw ConfigError(fmt::format("row {} of a batch of {} rows", index, rows()));
  std::vector<Tensor> leaves;
  for (std::size_t i = 0; i < spec().fields.size(); ++i) {
    const FieldSpec& field = spec().fields[i];
    if (const std::size_t size = data_->layout().field_row_bytes[i]; size > 0) {
      const std::byte* const start = data_->at(data_->layout().field_offset[i]) + index * size;
      leaves.push_back(Tensor::view(field.dtype, field.shape, {start, size}, data_));
    } else if (!is_dense(field)) {
      const Ragged all = data_->ragged(i);
      const auto value =
          all.values.subspan(all.offsets[index], all.offsets[index + 1] - all.offsets[index]);
      const auto shape = shape_of_row(field, value.size());
      if (!shape)
        throw ConfigError(
            fmt::format("field \"{}\" ({}) has several unknown sizes, a batch can have one",
                        field.path, field.text()),
            {}, "declare all sizes but one");
      leaves.push_back(Tensor::view(field.dtype, *shape, value, data_));
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
