#include "sample/row_buffer.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "sample/rows.h"

namespace penstock {
namespace {

constexpr std::align_val_t kAlign{64};

}  // namespace

void RowBuffer::Free::operator()(std::byte* data) const {
  ::operator delete(data, kAlign);
}

RowBuffer::RowBuffer(const ElementSpec& spec) : spec_(&spec) {
  if (!spec.known) return;
  dense_.resize(spec.fields.size());
  tensors_.resize(spec.fields.size());
  columns_.resize(spec.fields.size());
  for (std::size_t i = 0; i < columns_.size(); ++i)
    if (is_dense(spec.fields[i])) columns_[i].row_bytes = row_bytes(spec.fields[i]);
}

void RowBuffer::reserve(std::size_t rows) {
  if (rows <= capacity_) return;
  const std::size_t wanted = std::max(rows, capacity_ + capacity_ / 2);
  for (std::size_t i = 0; i < dense_.size(); ++i) {
    const FieldSpec& field = spec_->fields[i];
    if (!is_dense(field)) {
      tensors_[i].resize(wanted);
      continue;
    }
    const std::size_t bytes = row_bytes(field);
    auto* const data =
        static_cast<std::byte*>(::operator new(std::max<std::size_t>(1, wanted * bytes), kAlign));
    if (capacity_ * bytes > 0) std::memcpy(data, dense_[i].get(), capacity_ * bytes);
    dense_[i].reset(data);
  }
  if (!spec_->known) samples_.resize(wanted);
  sample_id_.resize(wanted);
  occurrence_.resize(wanted);
  capacity_ = wanted;
}

BlockView RowBuffer::rows(std::size_t first, std::size_t rows) {
  BlockView view;
  view.rows = rows;
  view.spec = spec_;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (dense_[i] != nullptr) {
      columns_[i].data = dense_[i].get() + first * columns_[i].row_bytes;
    } else {
      columns_[i].tensors = tensors_[i].data() + first;
    }
  }
  view.columns = columns_;
  if (!spec_->known) view.samples = samples_.data() + first;
  view.identity.sample_id = sample_id_.data() + first;
  view.identity.occurrence = occurrence_.data() + first;
  return view;
}

std::size_t keep_rows(const BlockView& block, std::span<const std::uint8_t> keep) {
  std::size_t kept = 0;
  for (std::size_t row = 0; row < keep.size();) {
    if (keep[row] == 0) {
      ++row;
      continue;
    }
    std::size_t end = row;
    while (end < keep.size() && keep[end] != 0) ++end;
    // Runs may overlap their new place by more than their length; moving one row at a time is
    // always right.
    if (row - kept >= end - row) {
      copy_rows(block, row, block, kept, end - row);
    } else if (row != kept) {
      for (std::size_t i = row; i < end; ++i) copy_rows(block, i, block, kept + (i - row), 1);
    }
    kept += end - row;
    row = end;
  }
  return kept;
}

}  // namespace penstock
