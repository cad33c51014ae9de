#pragma once
// A tensor: dtype, shape and immutable bytes. Copies share the bytes. Thread-safe for reading.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <penstock/dtype.h>

namespace penstock {

/// Sizes of the dimensions; kUnknown if not known before running.
using Shape = std::vector<std::int64_t>;
inline constexpr std::int64_t kUnknown = -1;

/// "[3, ?, 4]"; "[]" for a scalar.
std::string shape_text(const Shape& shape);
/// Number of values; every size must be known.
std::size_t shape_values(const Shape& shape);
bool shape_known(const Shape& shape);
/// True if `shape` matches `wanted`; an unknown size in `wanted` matches any size.
bool shape_fits(const Shape& shape, const Shape& wanted);

class Tensor {
 public:
  Tensor() = default;
  /// Copies `values`. Throws ConfigError if their number does not match `shape`.
  template <typename T>
  static Tensor of(std::span<const T> values, Shape shape) {
    return copy(kDtypeOf<T>, std::move(shape), std::as_bytes(values));
  }
  template <typename T>
  static Tensor of(const std::vector<T>& values) {
    return of(std::span<const T>(values), {static_cast<std::int64_t>(values.size())});
  }
  template <typename T>
  static Tensor scalar(T value) {
    return copy(kDtypeOf<T>, {}, std::as_bytes(std::span<const T>(&value, 1)));
  }
  /// One value of variable length.
  static Tensor bytes(std::string_view value, Dtype dtype = Dtype::bytes);
  /// Copies `data`, which must have exactly the size that dtype and shape need.
  static Tensor copy(Dtype dtype, Shape shape, std::span<const std::byte> data);
  /// A view of bytes that `owner` keeps alive and that must not change.
  static Tensor view(Dtype dtype, Shape shape, std::span<const std::byte> data,
                     std::shared_ptr<const void> owner);

  /// This tensor, or a copy if nothing keeps its bytes alive (as inside a map function).
  [[nodiscard]] Tensor kept() const;
  /// Rows [first, first + count) of the first dimension. Shares the memory.
  [[nodiscard]] Tensor rows(std::int64_t first, std::int64_t count) const;
  [[nodiscard]] bool empty() const { return data_ == nullptr; }
  [[nodiscard]] Dtype dtype() const { return dtype_; }
  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] std::span<const std::byte> raw() const { return {data_, size_}; }
  [[nodiscard]] std::string_view text() const {
    return {reinterpret_cast<const char*>(data_), size_};
  }
  /// The values. Throws ConfigError if T is not the tensor's dtype.
  template <typename T>
  [[nodiscard]] std::span<const T> values() const {
    expect_dtype(kDtypeOf<T>);
    return {reinterpret_cast<const T*>(data_), size_ / sizeof(T)};
  }
  /// The value of a scalar.
  template <typename T>
  [[nodiscard]] T item() const {
    expect_dtype(kDtypeOf<T>);
    expect_scalar();
    T value;
    std::memcpy(&value, data_, sizeof value);
    return value;
  }

 private:
  void expect_dtype(Dtype wanted) const;
  void expect_scalar() const;

  std::shared_ptr<const void> owner_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  Dtype dtype_ = Dtype::u8;
  Shape shape_;
};

}  // namespace penstock
