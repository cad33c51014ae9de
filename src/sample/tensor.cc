#include "penstock/tensor.h"

#include <fmt/format.h>

#include <utility>

#include "penstock/error.h"

namespace penstock {

std::string shape_text(const Shape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += shape[i] == kUnknown ? "?" : fmt::format("{}", shape[i]);
  }
  return text + "]";
}

std::size_t shape_values(const Shape& shape) {
  std::size_t count = 1;
  for (const std::int64_t size : shape) {
    if (size < 0) throw ConfigError(fmt::format("shape {} is not fully known", shape_text(shape)));
    if (__builtin_mul_overflow(count, static_cast<std::size_t>(size), &count))
      throw ConfigError(fmt::format("shape {} has too many values", shape_text(shape)));
  }
  return count;
}

bool shape_known(const Shape& shape) {
  for (const std::int64_t size : shape)
    if (size == kUnknown) return false;
  return true;
}

bool shape_fits(const Shape& shape, const Shape& wanted) {
  if (shape.size() != wanted.size()) return false;
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (wanted[i] != kUnknown && wanted[i] != shape[i]) return false;
  return true;
}

Tensor Tensor::bytes(std::string_view value, Dtype dtype) {
  return copy(dtype, {}, std::as_bytes(std::span(value)));
}

Tensor Tensor::copy(Dtype dtype, Shape shape, std::span<const std::byte> data) {
  auto owned = std::make_shared<std::byte[]>(data.size() + 1);
  if (!data.empty()) std::memcpy(owned.get(), data.data(), data.size());
  const std::span<const std::byte> bytes(owned.get(), data.size());
  return view(dtype, std::move(shape), bytes, std::move(owned));
}

Tensor Tensor::view(Dtype dtype, Shape shape, std::span<const std::byte> data,
                    std::shared_ptr<const void> owner) {
  if (is_variable(dtype)) {
    if (!shape.empty())
      throw ConfigError(fmt::format("a tensor of {} is one value, its shape must be [], not {}",
                                    dtype_name(dtype), shape_text(shape)));
  } else {
    std::size_t needed = 0;
    if (__builtin_mul_overflow(shape_values(shape), dtype_size(dtype), &needed) ||
        needed != data.size())
      throw ConfigError(fmt::format("{}{} needs {} bytes, got {}", dtype_name(dtype),
                                    shape_text(shape), needed, data.size()));
  }
  Tensor tensor;
  tensor.owner_ = std::move(owner);
  // A tensor without values still has an address: that is how an empty Tensor differs.
  static constexpr std::byte kNothing{0};
  tensor.data_ = data.data() == nullptr ? &kNothing : data.data();
  tensor.size_ = data.size();
  tensor.dtype_ = dtype;
  tensor.shape_ = std::move(shape);
  return tensor;
}

Tensor Tensor::rows(std::int64_t first, std::int64_t count) const {
  if (shape_.empty() || first < 0 || count < 0 || first > shape_.front() - count)
    throw ConfigError(fmt::format("rows {} to {} of a tensor {}{}", first, first + count - 1,
                                  dtype_name(dtype_), shape_text(shape_)));
  const std::size_t row_bytes =
      shape_.front() == 0 ? 0 : size_ / static_cast<std::size_t>(shape_.front());
  Shape shape = shape_;
  shape.front() = count;
  return view(dtype_, std::move(shape),
              raw().subspan(static_cast<std::size_t>(first) * row_bytes,
                            static_cast<std::size_t>(count) * row_bytes),
              owner_);
}

Tensor Tensor::kept() const {
  return owner_ ? *this : copy(dtype_, shape_, raw());
}

void Tensor::expect_dtype(Dtype wanted) const {
  if (wanted != dtype_)
    throw ConfigError(fmt::format("asked for {} values of a tensor that holds {}",
                                  dtype_name(wanted), dtype_name(dtype_)));
}

void Tensor::expect_scalar() const {
  if (size_ != dtype_size(dtype_))
    throw ConfigError(
        fmt::format("item() needs one value, the tensor's shape is {}", shape_text(shape_)));
}

}  // namespace penstock
