#include "sample/batch_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/fault.h"
#include "penstock/error.h"
#include "sample/rows.h"

namespace penstock {
namespace {

constexpr std::size_t kAlign = 64;

}  // namespace

BatchLayout::BatchLayout(ElementSpec fields, std::size_t rows)
    : spec(std::move(fields)), rows_max(rows) {
  const auto place = [this](std::size_t size) {
    const std::size_t offset = bytes;
    bytes = (bytes + size + kAlign - 1) / kAlign * kAlign;
    return offset;
  };
  for (std::size_t i = 0; i < spec.fields.size(); ++i) {
    const bool dense = is_dense(spec.fields[i]);
    field_row_bytes.push_back(dense ? row_bytes(spec.fields[i]) : 0);
    field_offset.push_back(place(field_row_bytes.back() * rows));
    if (!dense) varying.push_back(i);
  }
  sample_id_offset = place(rows * sizeof(std::uint64_t));
  valid_offset = place(rows);
  weight_offset = place(rows * sizeof(float));
  bytes = std::max(bytes, kAlign);
}

BatchData::BatchData(std::shared_ptr<const BatchLayout> layout, Slab slab)
    : layout_(std::move(layout)), slab_(std::move(slab)) {
  const std::size_t fields = layout_->spec.fields.size();
  columns_.resize(fields);
  for (std::size_t i = 0; i < fields; ++i) {
    columns_[i].data = at(layout_->field_offset[i]);
    columns_[i].row_bytes = layout_->field_row_bytes[i];
  }
  view_.spec = &layout_->spec;
  view_.columns = columns_;
  view_.identity.sample_id = reinterpret_cast<std::uint64_t*>(at(layout_->sample_id_offset));
}

std::uint8_t* BatchData::valid() const {
  return reinterpret_cast<std::uint8_t*>(at(layout_->valid_offset));
}
float* BatchData::weight() const {
  return reinterpret_cast<float*>(at(layout_->weight_offset));
}

void BatchData::begin(const ShareFacts& facts) {
  PENSTOCK_CHECK_LE(facts.all_rows(), layout_->rows_max);
  PENSTOCK_CHECK_LE(facts.rows, facts.all_rows());
  facts_ = facts;
  weigh();
  view_.rows = facts.rows;
  drop_varying();
  tensors_.resize(layout_->varying.size() * facts.rows);
  for (std::size_t i = 0; i < layout_->varying.size(); ++i)
    columns_[layout_->varying[i]].tensors = tensors_.data() + i * facts.rows;
}

void BatchData::drop_varying() {
  varying_.clear();
  varying_bytes_ = 0;
  tensors_.clear();
}

void BatchData::weigh() {
  // On every use: a consumer may have written to them.
  masked_ = 0;
  uneven_ = facts_.slots > 0;
  const auto each = static_cast<float>(facts_.weight().value());
  std::fill_n(valid(), facts_.all_rows(), std::uint8_t{1});
  std::fill_n(weight(), facts_.all_rows(), each);
  for (std::size_t row = facts_.rows; row < facts_.slots; ++row) valid()[row] = 0;
}

void BatchData::empty_row(std::size_t row) {
  valid()[row] = 0;
  if (!PENSTOCK_OFF("pad.weight")) weight()[row] = 0;
  if (row >= facts_.rows) view_.identity.sample_id[row] = UINT64_MAX;
  for (const Column& column : columns_)
    if (column.dense() && column.row_bytes > 0)
      std::memset(column.data + row * column.row_bytes, 0, column.row_bytes);
}

void BatchData::drop_rows(std::span<const std::uint8_t> flags, bool keep_one) {
  // Writes nothing if no row failed: other threads may be reading the number of rows.
  if (std::ranges::all_of(flags, [](std::uint8_t flag) { return flag == kRowGood; })) return;
  const auto failed = [](std::uint8_t flag) { return flag == kRowFailed; };
  keep_one = keep_one && std::ranges::all_of(flags, failed);
  std::size_t kept = 0;
  for (std::size_t row = 0; row < facts_.rows; ++row) {
    if (failed(flags[row]) && facts_.slots == 0 && !(keep_one && row == 0)) continue;
    if (row != kept) copy_rows(view_, row, view_, kept, 1);
    if (flags[row] != kRowGood) {
      valid()[kept] = 0;
      uneven_ = true;
      ++masked_;
    }
    if (failed(flags[row])) view_.identity.sample_id[kept] = UINT64_MAX;
    ++kept;
  }
  facts_.rows = view_.rows = kept;
}

void BatchData::gather() {
  const std::size_t count = facts_.all_rows();
  for (std::size_t row = 0; uneven_ && row < count; ++row)
    if (valid()[row] == 0) empty_row(row);
  const auto bytes_of = [this](const Tensor* rows, std::size_t row) {
    return row < facts_.rows && valid()[row] != 0 ? rows[row].raw() : std::span<const std::byte>();
  };
  for (const std::size_t field : layout_->varying) {
    const Tensor* const rows = columns_[field].tensors;
    Varying packed;
    packed.offsets.assign(count + 1, 0);
    for (std::size_t i = 0; i < count; ++i)
      packed.offsets[i + 1] = packed.offsets[i] + bytes_of(rows, i).size();
    packed.values.resize(packed.offsets.back());
    for (std::size_t i = 0; i < count; ++i)
      if (const auto bytes = bytes_of(rows, i); !bytes.empty())
        std::memcpy(packed.values.data() + packed.offsets[i], bytes.data(), bytes.size());
    varying_bytes_ += packed.values.size() + packed.offsets.size() * sizeof(std::uint64_t);
    varying_.push_back(std::move(packed));
  }
  tensors_.clear();
  tensors_.shrink_to_fit();
}

Ragged BatchData::ragged(std::size_t field) const {
  const auto found = std::ranges::find(layout_->varying, field);
  if (found == layout_->varying.end())
    throw ConfigError(
        fmt::format("field \"{}\" is dense: use [] for it", layout_->spec.fields[field].path));
  const Varying& packed = varying_[static_cast<std::size_t>(found - layout_->varying.begin())];
  return {packed.offsets, packed.values};
}

void BatchData::set_fence(Fence fence) const {
  Lock lock(mutex_);
  fence_ = std::move(fence);
}

bool BatchData::fence_passed() const {
  Lock lock(mutex_);
  if (fence_ && !fence_()) return false;
  fence_ = nullptr;
  return true;
}

std::shared_ptr<BatchData> BatchRing::acquire(const std::shared_ptr<const BatchLayout>& layout,
                                              const ShareFacts& facts) {
  std::unique_ptr<BatchData> batch;
  {
    Lock lock(mutex_);
    // The one returned last is the warmest in the cache.
    for (std::size_t i = spare_.size(); i-- > 0 && !batch;) {
      if (&spare_[i]->layout() != layout.get() || !spare_[i]->fence_passed()) continue;
      batch = std::move(spare_[i]);
      spare_.erase(spare_.begin() + static_cast<std::ptrdiff_t>(i));
      spare_bytes_ -= batch->bytes();
    }
  }
  if (!batch) batch = std::make_unique<BatchData>(layout, Slab(allocator_, layout->bytes));
  batch->begin(facts);
  return {batch.release(), [ring = shared_from_this()](BatchData* data) {
            ring->release(std::unique_ptr<BatchData>(data));
          }};
}

void BatchRing::release(std::unique_ptr<BatchData> batch) {
  // Slabs that a device still reads must stay, even if there are enough.
  const bool busy = !batch->fence_passed();
  if (!busy) batch->drop_varying();
  const std::size_t bytes = batch->bytes();
  Lock lock(mutex_);
  if (!busy && spare_bytes_ + bytes > spare_bytes_max_) return;
  spare_bytes_ += bytes;
  spare_.push_back(std::move(batch));
}

std::size_t BatchRing::spare_bytes() const {
  Lock lock(mutex_);
  return spare_bytes_;
}

}  // namespace penstock
