#pragma once
// The types that replicas exchange, as tensors, and what a reduction knows about each part.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <penstock/reduce.h>
#include <penstock/tensor.h>

namespace penstock::detail {

/// The types that replicas can exchange: double, float, int64, vectors of these, and tensors of
/// f64, f32 or i64; all are sent as tensors.
template <typename T>
struct ReplicaValue {
  static constexpr bool kKnown = false;
};
template <typename T>
  requires(std::same_as<T, double> || std::same_as<T, float> || std::same_as<T, std::int64_t>)
struct ReplicaValue<T> {
  static constexpr bool kKnown = true;
  using Row = void;            // the type of a value after its axis is summed
  using All = std::vector<T>;  // the type that `gather` returns for one value per replica
  static Tensor tensor(const T& value) { return Tensor::scalar(value); }
  static T value(const Tensor& tensor) { return tensor.empty() ? T{} : tensor.item<T>(); }
};
template <typename T>
  requires(std::same_as<T, double> || std::same_as<T, float> || std::same_as<T, std::int64_t>)
struct ReplicaValue<std::vector<T>> {
  static constexpr bool kKnown = true;
  using Row = T;
  using All = std::vector<T>;
  static Tensor tensor(const std::vector<T>& values) {
    return Tensor::view(kDtypeOf<T>, {static_cast<std::int64_t>(values.size())},
                        std::as_bytes(std::span<const T>(values)), nullptr);
  }
  static std::vector<T> value(const Tensor& tensor) {
    if (tensor.empty()) return {};
    const auto values = tensor.values<T>();
    return {values.begin(), values.end()};
  }
};
template <>
struct ReplicaValue<Tensor> {
  static constexpr bool kKnown = true;
  using Row = Tensor;
  using All = Tensor;
  static Tensor tensor(const Tensor& value) { return value; }
  static Tensor value(const Tensor& tensor) { return tensor; }
};

/// How many samples a share holds, and which of its rows they are.
struct ShareCount {
  std::uint64_t rows = 0;
  std::uint64_t valid = 0;
  std::vector<std::uint8_t> mask;  // empty: all rows
};

/// One replica's part of a value.
struct Part {
  std::optional<Tensor> value;  // nullopt: the replica had no rows
  std::uint64_t count = 0;      // samples that the value covers
  bool is_sum = false;          // the sum over those samples; else their mean
  const ShareCount* share = nullptr;
};

Tensor reduce_parts(Reduce op, std::span<const Part> parts);
/// Sums along `axis` of each value first. Along axis 0, padding rows do not count.
Tensor reduce_parts(Reduce op, std::span<const Part> parts, std::int64_t axis);
Tensor gather_parts(std::span<const Part> parts, std::int64_t axis);
[[noreturn]] void throw_no_value(std::size_t replica, std::size_t replicas);

template <typename T>
struct IsCounted : std::false_type {
  using Inner = T;
};
template <typename T>
struct IsCounted<Counted<T>> : std::true_type {
  using Inner = T;
};

template <typename T>
Part part_of(const T& value, std::uint64_t count) {
  using Inner = typename IsCounted<T>::Inner;
  static_assert(ReplicaValue<Inner>::kKnown,
                "replicas exchange double, float, int64_t, vectors of these, Tensors, and Counted "
                "of any of them");
  if constexpr (IsCounted<T>::value) {
    return {ReplicaValue<Inner>::tensor(value.sum), value.count, true, nullptr};
  } else {
    return {ReplicaValue<Inner>::tensor(value), count, false, nullptr};
  }
}

}  // namespace penstock::detail
