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

void OpenSizes::add(const ElementSpec& spec) {
  Lock lock(mutex_);
  ElementSpec all = spec_ ? *spec_ : spec;
  for (std::size_t i = 0; i < all.fields.size(); ++i)
    for (std::size_t d = 0; d < all.fields[i].shape.size(); ++d)
      if (spec.fields[i].shape[d] == kUnknown) all.fields[i].shape[d] = kUnknown;
  if (!spec_ || all != *spec_) spec_ = std::make_shared<const ElementSpec>(std::move(all));
}

std::shared_ptr<const ElementSpec> OpenSizes::spec() const {
  Lock lock(mutex_);
  return spec_;
}

BatchLayout::BatchLayout(ElementSpec fields, std::size_t rows, std::shared_ptr<OpenSizes> learned)
    : spec(std::move(fields)), rows_max(rows), open(std::move(learned)) {
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
    if (dense && open && !spec.fields[i].shape.empty()) may_differ.push_back(i);
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

void BatchData::begin(const ShareFacts& facts, const BatchForm& form) {
  PENSTOCK_CHECK_LE(facts.all_rows(), layout_->rows_max);
  PENSTOCK_CHECK_LE(facts.rows, facts.all_rows());
  facts_ = facts;
  form_ = form;
  weigh();
  view_.rows = facts.rows;
  drop_packed();
  const std::size_t varying = layout_->varying.size();
  tensors_.resize((varying + layout_->may_differ.size()) * facts.rows);
  for (std::size_t i = 0; i < varying; ++i)
    columns_[layout_->varying[i]].tensors = tensors_.data() + i * facts.rows;
  for (std::size_t i = 0; i < layout_->may_differ.size(); ++i)
    columns_[layout_->may_differ[i]].others = tensors_.data() + (varying + i) * facts.rows;
}

void BatchData::drop_packed() {
  packed_.clear();
  packed_bytes_ = 0;
  tensors_.clear();
  opened_.reset();
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

std::vector<RowValue> BatchData::row_values(std::size_t field) const {
  const Column& column = columns_[field];
  const Shape& dense_shape = layout_->spec.fields[field].shape;
  std::vector<RowValue> rows(facts_.all_rows());
  for (std::size_t row = 0; row < facts_.rows; ++row) {
    if (valid()[row] == 0) continue;
    const Tensor* tensor = column.dense() ? nullptr : column.tensors + row;
    if (column.others != nullptr && !column.others[row].empty()) tensor = column.others + row;
    rows[row] =
        tensor != nullptr
            ? RowValue{tensor->raw(), &tensor->shape()}
            : RowValue{{column.data + row * column.row_bytes, column.row_bytes}, &dense_shape};
  }
  return rows;
}

FieldSpec BatchData::opened_field(std::size_t field, std::span<const RowValue> rows) const {
  FieldSpec opened = layout_->spec.fields[field];
  for (const RowValue& row : rows)
    for (std::size_t d = 0; row.shape != nullptr && d < opened.shape.size(); ++d)
      if ((*row.shape)[d] != opened.shape[d]) opened.shape[d] = kUnknown;
  return opened;
}

void BatchData::put(std::size_t field, const FieldSpec& spec, PackedField packed) {
  packed_.resize(layout_->spec.fields.size());
  if (packed_[field]) packed_bytes_ -= packed_[field]->bytes();
  packed_bytes_ += packed.bytes();
  packed_[field] = std::move(packed);
  if (this->spec().fields[field] == spec) return;
  ElementSpec opened = this->spec();
  opened.fields[field] = spec;
  opened_ = std::make_shared<const ElementSpec>(std::move(opened));
}

Result<void> BatchData::pad(std::size_t field, const FieldPadding& rule) {
  const std::vector<RowValue> rows = row_values(field);
  FieldSpec spec = opened_field(field, rows);
  // A learned length may differ in the next batch, even if it does not here.
  if (is_dense(layout_->spec.fields[field])) spec.shape.front() = kUnknown;
  PackedField padded;
  if (auto cannot = pad_rows(spec, rows, rule, padded))
    return Failure{
        fmt::format("padded_batch: {}", cannot->why), {}, cannot->remedy, nullptr, cannot->row};
  put(field, spec, std::move(padded));
  return {};
}

Result<void> BatchData::gather() {
  const std::size_t count = facts_.all_rows();
  for (std::size_t row = 0; uneven_ && row < count; ++row)
    if (valid()[row] == 0) empty_row(row);
  for (std::size_t field = 0; field < columns_.size(); ++field) {
    const Column& column = columns_[field];
    const FieldSpec& spec = layout_->spec.fields[field];
    const FieldPadding* const rule = form_.padding != nullptr && !is_variable(spec.dtype)
                                         ? form_.padding->of(spec.path)
                                         : nullptr;
    const bool dense = is_dense(spec);
    if (dense && !std::ranges::binary_search(layout_->may_differ, field)) continue;
    bool differs = false;  // the size of a row without a sample does not count
    for (std::size_t row = 0; dense && row < facts_.rows; ++row)
      differs = differs || (valid()[row] != 0 && !column.others[row].empty());
    const bool can_pad =
        rule != nullptr && (!dense || differs || value_bytes(rule->value, spec.dtype));
    if (can_pad && !spec.shape.empty()) {
      if (auto done = pad(field, *rule); !done) return done;
      continue;
    }
    if (dense && !differs) continue;
    const std::vector<RowValue> rows = row_values(field);
    const FieldSpec opened = dense ? opened_field(field, rows) : spec;
    put(field, opened, pack_rows(opened, rows, form_.whole));
  }
  tensors_.clear();
  if (layout_->may_differ.empty()) tensors_.shrink_to_fit();  // otherwise the next batch needs it
  return {};
}

void BatchData::open(const std::shared_ptr<const ElementSpec>& wider) {
  for (const std::size_t field : layout_->may_differ) {
    const FieldSpec now = spec().fields[field];
    const FieldSpec& wanted = wider->fields[field];
    const bool padded = form_.padding != nullptr && form_.padding->of(wanted.path) != nullptr;
    if (padded || now == wanted) continue;
    std::vector<Shape> shapes(facts_.all_rows(), now.shape);
    std::vector<RowValue> rows(facts_.all_rows());
    for (std::size_t row = 0; row < rows.size(); ++row) {
      if (valid()[row] == 0) continue;
      const Column& column = columns_[field];
      rows[row] = {{column.data + row * column.row_bytes, column.row_bytes}, &shapes[row]};
      if (const PackedField* const before = packed(field)) {
        shapes[row] = before->shape_of(row, now);
        rows[row].bytes = before->row(row);
      }
    }
    put(field, wanted, pack_rows(wanted, rows, form_.whole));
  }
}

const PackedField* BatchData::packed(std::size_t field) const {
  return field < packed_.size() && packed_[field] ? &*packed_[field] : nullptr;
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
                                              const ShareFacts& facts, const BatchForm& form) {
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
  batch->begin(facts, form);
  return {batch.release(), [ring = shared_from_this()](BatchData* data) {
            ring->release(std::unique_ptr<BatchData>(data));
          }};
}

void BatchRing::release(std::unique_ptr<BatchData> batch) {
  // Slabs that a device still reads must stay, even if there are enough.
  const bool busy = !batch->fence_passed();
  if (!busy) batch->drop_packed();
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
