// Combines the values of replicas. Floats are added in double, in replica order, and rounded once.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "penstock/strategy.h"

namespace penstock::detail {
namespace {

/// The first value; all others must have its dtype and shape, except for the size of `axis`.
const Tensor* checked(const char* word, std::span<const Part> parts,
                      std::optional<std::size_t> free_axis) {
  const Tensor* first = nullptr;
  std::size_t first_replica = 0;
  for (std::size_t r = 0; r < parts.size(); ++r) {
    if (!parts[r].value) continue;
    const Tensor& value = *parts[r].value;
    if (first == nullptr) {
      first = &value;
      first_replica = r;
    }
    Shape shape = value.shape();
    Shape wanted = first->shape();
    if (free_axis && shape.size() == wanted.size() && *free_axis < shape.size())
      shape[*free_axis] = wanted[*free_axis] = 0;
    if (value.dtype() != first->dtype() || shape != wanted)
      throw ConfigError(
          fmt::format("{}: replica {} returned {}{}, replica {} returned {}{}", word, first_replica,
                      dtype_name(first->dtype()), shape_text(first->shape()), r,
                      dtype_name(value.dtype()), shape_text(value.shape())),
          {}, "return values of one type and shape from every replica");
  }
  return first;
}

std::size_t checked_axis(const char* word, std::int64_t axis, const Shape& shape) {
  const auto rank = static_cast<std::int64_t>(shape.size());
  const std::int64_t found = axis < 0 ? axis + rank : axis;
  if (found < 0 || found >= rank)
    throw ConfigError(
        fmt::format("{}: axis {} of values of shape {}", word, axis, shape_text(shape)), {},
        rank == 0 ? "leave the axis out" : "axes count from 0");
  return static_cast<std::size_t>(found);
}

void expect_number(const char* word, Dtype dtype) {
  if (dtype == Dtype::f64 || dtype == Dtype::f32 || dtype == Dtype::i64) return;
  throw ConfigError(fmt::format("{}: values of {} cannot be added", word, dtype_name(dtype)), {},
                    "convert them to f32, f64 or i64");
}

void expect_fraction(Dtype dtype) {
  if (dtype != Dtype::i64) return;
  throw ConfigError("reduce(mean): the values are i64, and their mean would not be", {},
                    "return double, float or Counted<double>");
}

[[noreturn]] void throw_no_samples() {
  throw ConfigError("reduce(mean): no replica has a sample, so there is no mean", {},
                    "check step.valid_count() first");
}

/// The axes around the given one: values are [outer][axis][inner].
struct Split {
  std::size_t outer = 1;
  std::size_t length = 1;
  std::size_t inner = 1;
  Split(const Shape& shape, std::size_t axis) : length(static_cast<std::size_t>(shape[axis])) {
    for (std::size_t i = 0; i < shape.size(); ++i)
      (i < axis ? outer : inner) *= i == axis ? 1 : static_cast<std::size_t>(shape[i]);
  }
};

/// The rows of a value that are padding: only if its rows are those of the share.
struct Rows {
  const std::uint8_t* mask = nullptr;
  std::uint64_t count = 0;
  Rows(const Part& part, std::size_t axis, std::size_t length) : count(length) {
    const bool rows_of_share =
        axis == 0 && part.share != nullptr && part.share->mask.size() == length && length > 0;
    if (!rows_of_share) return;
    mask = part.share->mask.data();
    count = part.share->valid;
  }
  [[nodiscard]] bool valid(std::size_t row) const { return mask == nullptr || mask[row] != 0; }
};

/// Adds numbers of one dtype: integers as integers, floats as double.
template <typename T>
class Sums {
 public:
  using Total = std::conditional_t<std::is_floating_point_v<T>, double, std::uint64_t>;
  explicit Sums(std::size_t size) : totals_(size) {}
  void add(std::size_t at, T value) { totals_[at] += static_cast<Total>(value); }
  void add(std::span<const T> values, double weight) {
    for (std::size_t i = 0; i < values.size(); ++i)
      totals_[i] += static_cast<Total>(weight * static_cast<double>(values[i]));
  }
  void add(std::span<const T> values) {
    for (std::size_t i = 0; i < values.size(); ++i) add(i, values[i]);
  }
  void divide(double by) {
    for (Total& total : totals_) total = static_cast<Total>(static_cast<double>(total) / by);
  }
  [[nodiscard]] Tensor tensor(Shape shape) const {
    std::vector<T> values;
    values.reserve(totals_.size());
    for (const Total total : totals_) values.push_back(static_cast<T>(total));
    return Tensor::of(std::span<const T>(values), std::move(shape));
  }

 private:
  std::vector<Total> totals_;
};

template <typename T>
Tensor reduce_whole(Reduce op, std::span<const Part> parts, const Tensor& like) {
  Sums<T> sums(shape_values(like.shape()));
  std::uint64_t count = 0;
  const Part* only = nullptr;
  for (const Part& part : parts) {
    if (!part.value) continue;
    const auto values = part.value->values<T>();
    if (op == Reduce::sum) {
      sums.add(values);
    } else if (part.count > 0) {  // a share of padding only has no mean
      only = count == 0 ? &part : nullptr;
      count += part.count;
      if (part.is_sum) {
        sums.add(values);
      } else {
        sums.add(values, static_cast<double>(part.count));
      }
    }
  }
  if (op == Reduce::sum) return sums.tensor(like.shape());
  if (count == 0) throw_no_samples();
  // Multiplying and dividing by n need not return the same number.
  if (only != nullptr && !only->is_sum)
    return Tensor::copy(like.dtype(), like.shape(), only->value->raw());
  sums.divide(static_cast<double>(count));
  return sums.tensor(like.shape());
}

template <typename T>
Tensor reduce_axis(Reduce op, std::span<const Part> parts, const Tensor& like, std::size_t axis) {
  Shape shape = like.shape();
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  Sums<T> sums(shape_values(shape));
  std::uint64_t count = 0;
  for (const Part& part : parts) {
    if (!part.value) continue;
    const Split split(part.value->shape(), axis);
    const Rows rows(part, axis, split.length);
    const auto values = part.value->values<T>();
    count += rows.count;
    for (std::size_t outer = 0; outer < split.outer; ++outer)
      for (std::size_t row = 0; row < split.length; ++row)
        for (std::size_t inner = 0; rows.valid(row) && inner < split.inner; ++inner)
          sums.add(outer * split.inner + inner,
                   values[(outer * split.length + row) * split.inner + inner]);
  }
  if (op == Reduce::mean) {
    if (count == 0) throw_no_samples();
    sums.divide(static_cast<double>(count));
  }
  return sums.tensor(std::move(shape));
}

/// Calls `with(T{})` for the C++ type of a dtype that `expect_number` accepted.
template <typename With>
Tensor with_type(Dtype dtype, With with) {
  if (dtype == Dtype::f64) return with(double{});
  if (dtype == Dtype::f32) return with(float{});
  return with(std::int64_t{});
}

}  // namespace

Tensor reduce_parts(Reduce op, std::span<const Part> parts) {
  const char* const word = op == Reduce::sum ? "reduce(sum)" : "reduce(mean)";
  const Tensor* const like = checked(word, parts, std::nullopt);
  if (like == nullptr) {
    if (op == Reduce::mean) throw_no_samples();
    return {};
  }
  expect_number(word, like->dtype());
  if (op == Reduce::mean) expect_fraction(like->dtype());
  return with_type(like->dtype(), [&]<typename T>(T) { return reduce_whole<T>(op, parts, *like); });
}

Tensor reduce_parts(Reduce op, std::span<const Part> parts, std::int64_t axis) {
  const char* const word = op == Reduce::sum ? "reduce(sum)" : "reduce(mean)";
  const auto first = std::ranges::find_if(parts, [](const Part& part) { return !!part.value; });
  if (first == parts.end()) {
    if (op == Reduce::mean) throw_no_samples();
    return {};
  }
  const Tensor& like = *first->value;
  const std::size_t along = checked_axis(word, axis, like.shape());
  checked(word, parts, along);
  expect_number(word, like.dtype());
  if (op == Reduce::mean) expect_fraction(like.dtype());
  return with_type(like.dtype(),
                   [&]<typename T>(T) { return reduce_axis<T>(op, parts, like, along); });
}

Tensor gather_parts(std::span<const Part> parts, std::int64_t axis) {
  // A number counts as one row.
  std::vector<Part> rows(parts.begin(), parts.end());
  for (Part& part : rows)
    if (part.value && part.value->shape().empty()) {
      part.value = Tensor::copy(part.value->dtype(), {1}, part.value->raw());
      part.share = nullptr;
    }
  const auto first = std::ranges::find_if(rows, [](const Part& part) { return !!part.value; });
  if (first == rows.end()) return {};
  const Tensor& like = *first->value;
  if (is_variable(like.dtype()))
    throw ConfigError(
        fmt::format("gather: values of {} cannot be gathered", dtype_name(like.dtype())));
  const std::size_t along = checked_axis("gather", axis, like.shape());
  checked("gather", rows, along);
  Shape shape = like.shape();
  shape[along] = 0;
  for (const Part& part : rows)
    if (part.value)
      shape[along] += static_cast<std::int64_t>(
          Rows(part, along, Split(part.value->shape(), along).length).count);
  std::vector<std::byte> bytes;
  bytes.reserve(shape_values(shape) * dtype_size(like.dtype()));
  for (std::size_t outer = 0; outer < Split(like.shape(), along).outer; ++outer)
    for (const Part& part : rows) {
      if (!part.value) continue;
      const Split split(part.value->shape(), along);
      const Rows which(part, along, split.length);
      const std::size_t row_bytes = split.inner * dtype_size(like.dtype());
      for (std::size_t row = 0; row < split.length; ++row) {
        if (!which.valid(row)) continue;
        const auto from =
            part.value->raw().subspan((outer * split.length + row) * row_bytes, row_bytes);
        bytes.insert(bytes.end(), from.begin(), from.end());
      }
    }
  return Tensor::copy(like.dtype(), std::move(shape), bytes);
}

void throw_no_value(std::size_t replica, std::size_t replicas) {
  if (replica >= replicas)
    throw ConfigError(fmt::format("replica {} of {}", replica, replicas), {},
                      "replicas of this process count from 0");
  throw ConfigError(
      fmt::format("replica {} has no value: its share was empty, so nothing was computed there",
                  replica),
      {}, "check has(replica) first, or use reduce or gather");
}

}  // namespace penstock::detail
