// tested in src/record/arrow_file_encoder_test.cc
#include "record/arrow_column_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "penstock/error.h"

namespace penstock {
namespace {

std::string_view bytes_of(const std::vector<std::int64_t>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(numbers.front())};
}

}  // namespace

ArrowColumnBuilder::ArrowColumnBuilder(FieldSpec field) : field_(std::move(field)) {
  const auto open = std::ranges::count(field_.shape, kUnknown);
  ends_.resize(static_cast<std::size_t>(open) + (is_variable(field_.dtype) ? 1 : 0));
  clear();
}

void ArrowColumnBuilder::clear() {
  rows_ = 0;
  values_.clear();
  values_count_ = 0;
  for (auto& ends : ends_) ends.assign(1, 0);
}

void ArrowColumnBuilder::append(const Tensor& value, std::uint64_t number) {
  if (field_.dtype == Dtype::string && !is_utf8(value.text())) {
    Where where;
    where.field = field_.path;
    throw SampleError(
        fmt::format("the text of sample {} is not UTF-8, as Arrow's texts are", number), where,
        "store it as bytes, or repair it with map");
  }
  std::int64_t lists = 1;  // of this row, in the dimension before
  auto ends = ends_.begin();
  for (std::size_t i = 0; i < field_.shape.size(); ++i) {
    const std::int64_t size = value.shape()[i];
    if (field_.shape[i] == kUnknown) {
      for (std::int64_t list = 0; list < lists; ++list) ends->push_back(ends->back() + size);
      ++ends;
    }
    lists *= size;
  }
  append_values(value);
  ++rows_;
}

void ArrowColumnBuilder::append_values(const Tensor& value) {
  switch (field_.dtype) {
    case Dtype::boolean:
      for (const bool is_set : value.values<bool>()) {
        if (values_count_ % 8 == 0) values_ += '\0';
        if (is_set) values_.back() = static_cast<char>(values_.back() | 1 << (values_count_ % 8));
        ++values_count_;
      }
      return;
    case Dtype::bf16:
      for (const BFloat16 half : value.values<BFloat16>()) {
        const auto single = static_cast<float>(half);
        values_.append(reinterpret_cast<const char*>(&single), sizeof single);
      }
      return;
    case Dtype::bytes:
    case Dtype::string:
      values_ += value.text();
      ends_.back().push_back(static_cast<std::int64_t>(values_.size()));
      return;
    default:
      values_ += value.text();
  }
}

std::uint64_t ArrowColumnBuilder::bytes() const {
  std::uint64_t bytes = values_.size();
  for (const auto& ends : ends_) bytes += (ends.size() - 1) * sizeof(std::int64_t);
  return bytes;
}

void ArrowColumnBuilder::add_to(ArrowBuffers& buffers) const {
  std::uint64_t values = rows_;
  auto ends = ends_.begin();
  for (const std::int64_t size : field_.shape) {
    buffers.begin_column(values);
    if (size == kUnknown) {
      buffers.add(bytes_of(*ends));
      values = static_cast<std::uint64_t>(ends->back());
      ++ends;
    } else {
      values *= static_cast<std::uint64_t>(size);
    }
  }
  buffers.begin_column(values);
  if (is_variable(field_.dtype)) buffers.add(bytes_of(*ends));
  buffers.add(values_);
}

}  // namespace penstock
