#include "sample/rows.h"

#include <fmt/format.h>

#include <cstring>

#include "penstock/error.h"

namespace penstock {

const Column& Block::find(std::string_view path, Dtype wanted) const {
  const auto index = view_.spec->find(path);
  if (!index) throw ConfigError(fmt::format("no field \"{}\" in {}", path, view_.spec->text()));
  const FieldSpec& field = view_.spec->fields[*index];
  if (field.dtype != wanted || !view_.columns[*index].dense())
    throw ConfigError(fmt::format("field \"{}\" is {}, asked for a dense column of {}", path,
                                  field.text(), dtype_name(wanted)));
  return view_.columns[*index];
}

Sample read_row(const BlockView& block, std::size_t row) {
  if (block.samples != nullptr) return block.samples[row];
  std::vector<Tensor> leaves;
  leaves.reserve(block.columns.size());
  for (std::size_t i = 0; i < block.columns.size(); ++i) {
    const Column& column = block.columns[i];
    const FieldSpec& field = block.spec->fields[i];
    if (column.others != nullptr && !column.others[row].empty()) {
      leaves.push_back(column.others[row]);
      continue;
    }
    leaves.push_back(column.dense()
                         ? Tensor::view(field.dtype, field.shape,
                                        {column.data + row * column.row_bytes, column.row_bytes},
                                        nullptr)
                         : column.tensors[row]);
  }
  return Sample::assemble(block.spec->structure, std::move(leaves));
}

namespace {

/// True if only sizes differ, of fields that may have rows of other sizes.
bool differs_in_sizes(const BlockView& block, const Sample& sample) {
  if (sample.structure() != block.spec->structure) return false;
  for (std::size_t i = 0; i < block.columns.size(); ++i) {
    const FieldSpec& field = block.spec->fields[i];
    const Tensor& leaf = sample.leaves()[i];
    if (leaf.empty() || leaf.dtype() != field.dtype) return false;
    const bool fits = block.columns[i].others != nullptr ? leaf.shape().size() == field.shape.size()
                                                         : shape_fits(leaf.shape(), field.shape);
    if (!fits) return false;
  }
  return true;
}

/// NumPy takes the empty list for an array of f64: the sample with the dtypes of the block for such
/// fields, or nothing if there is none.
std::optional<Sample> with_empty_lists(const BlockView& block, const Sample& sample) {
  if (sample.structure() != block.spec->structure) return std::nullopt;
  std::vector<Tensor> leaves = sample.leaves();
  bool found = false;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const FieldSpec& field = block.spec->fields[i];
    const bool list = leaves[i].shape() == Shape{0} && leaves[i].dtype() == Dtype::f64;
    if (!list || field.dtype == Dtype::f64 || field.shape.empty() || is_variable(field.dtype))
      continue;
    Shape shape = field.shape;
    shape.front() = 0;
    if (!shape_known(shape)) continue;
    leaves[i] = Tensor::copy(field.dtype, std::move(shape), {});
    found = true;
  }
  if (!found) return std::nullopt;
  return Sample::assemble(sample.structure(), std::move(leaves));
}

}  // namespace

std::optional<std::string> write_row(const BlockView& block, std::size_t row,
                                     const Sample& sample) {
  if (block.samples != nullptr) {
    if (sample.leaves().empty()) return "the sample has no tensors";
    std::vector<Tensor> leaves;
    for (const Tensor& leaf : sample.leaves()) {
      if (leaf.empty()) return "one of the sample's tensors is empty";
      leaves.push_back(leaf.kept());
    }
    block.samples[row] = Sample::assemble(sample.structure(), std::move(leaves));
    return std::nullopt;
  }
  if (auto difference = block.spec->difference(sample); difference) {
    if (!differs_in_sizes(block, sample)) {
      const auto retyped = with_empty_lists(block, sample);
      return retyped ? write_row(block, row, *retyped) : difference;
    }
  }
  for (std::size_t i = 0; i < block.columns.size(); ++i) {
    const Column& column = block.columns[i];
    const Tensor& leaf = sample.leaves()[i];
    const bool other = column.others != nullptr && leaf.shape() != block.spec->fields[i].shape;
    if (column.others != nullptr) column.others[row] = other ? leaf.kept() : Tensor();
    if (!column.dense()) {
      column.tensors[row] = leaf.kept();
    } else if (other) {
      continue;
    } else if (column.row_bytes > 0) {
      std::memcpy(column.data + row * column.row_bytes, leaf.raw().data(), column.row_bytes);
    }
  }
  return std::nullopt;
}

void copy_rows(const BlockView& from, std::size_t from_row, const BlockView& to, std::size_t to_row,
               std::size_t rows) {
  if (rows == 0) return;  // an empty block may have no memory
  for (std::size_t i = 0; i < from.columns.size(); ++i) {
    const Column& source = from.columns[i];
    const Column& target = to.columns[i];
    if (target.others != nullptr)
      for (std::size_t r = 0; r < rows; ++r)
        target.others[to_row + r] =
            source.others != nullptr ? source.others[from_row + r] : Tensor();
    if (source.dense()) {
      if (source.row_bytes > 0)
        std::memcpy(target.data + to_row * target.row_bytes,
                    source.data + from_row * source.row_bytes, rows * source.row_bytes);
    } else {
      for (std::size_t r = 0; r < rows; ++r)
        target.tensors[to_row + r] = source.tensors[from_row + r];
    }
  }
  if (from.samples != nullptr)
    for (std::size_t r = 0; r < rows; ++r) to.samples[to_row + r] = from.samples[from_row + r];
  std::memcpy(to.identity.sample_id + to_row, from.identity.sample_id + from_row,
              rows * sizeof(std::uint64_t));
  if (to.identity.occurrence != nullptr && from.identity.occurrence != nullptr)
    std::memcpy(to.identity.occurrence + to_row, from.identity.occurrence + from_row,
                rows * sizeof(std::uint64_t));
}

namespace {

template <typename Value>
void scatter(const Value* from, Value* to, std::span<const std::uint32_t> places) {
  for (std::size_t i = 0; i < places.size(); ++i) to[places[i]] = from[i];
}

}  // namespace

void scatter_rows(const BlockView& from, const BlockView& to,
                  std::span<const std::uint32_t> places) {
  for (std::size_t c = 0; c < from.columns.size(); ++c) {
    const Column& source = from.columns[c];
    const Column& target = to.columns[c];
    const std::size_t bytes = source.row_bytes;
    if (bytes == sizeof(std::uint64_t)) {
      scatter(reinterpret_cast<const std::uint64_t*>(source.data),
              reinterpret_cast<std::uint64_t*>(target.data), places);
    } else if (bytes > 0) {
      for (std::size_t i = 0; i < places.size(); ++i)
        std::memcpy(target.data + places[i] * bytes, source.data + i * bytes, bytes);
    }
  }
  scatter(from.identity.sample_id, to.identity.sample_id, places);
  if (to.identity.occurrence != nullptr)
    scatter(from.identity.occurrence, to.identity.occurrence, places);
}

BlockView cut_rows(const BlockView& block, std::size_t first, std::size_t rows, Scratch& scratch) {
  if (first == 0 && rows == block.rows) return block;
  Column* const columns = scratch.array<Column>(block.columns.size());
  for (std::size_t i = 0; i < block.columns.size(); ++i) {
    columns[i] = block.columns[i];
    if (columns[i].dense()) {
      columns[i].data += first * columns[i].row_bytes;
    } else {
      columns[i].tensors += first;
    }
    if (columns[i].others != nullptr) columns[i].others += first;
  }
  BlockView cut = block;
  cut.rows = rows;
  cut.columns = {columns, block.columns.size()};
  if (cut.samples != nullptr) cut.samples += first;
  cut.identity.sample_id += first;
  if (cut.identity.occurrence != nullptr) cut.identity.occurrence += first;
  if (cut.identity.failed != nullptr) cut.identity.failed += first;
  return cut;
}

ScratchBlock::ScratchBlock(const ElementSpec& spec, std::size_t rows, Scratch& scratch,
                           std::optional<Identity> identity) {
  view_.rows = rows;
  view_.spec = &spec;
  if (identity) {
    view_.identity = *identity;
  } else {
    view_.identity = {scratch.array<std::uint64_t>(rows), scratch.array<std::uint64_t>(rows)};
  }
  if (!spec.known) {
    samples_.resize(rows);
    view_.samples = samples_.data();
    return;
  }
  std::size_t varying = 0;
  for (const FieldSpec& field : spec.fields) varying += is_dense(field) ? 0 : 1;
  tensors_.resize(varying * rows);
  Column* const columns = scratch.array<Column>(spec.fields.size());
  std::size_t next = 0;
  for (std::size_t i = 0; i < spec.fields.size(); ++i) {
    columns[i] = Column{};
    if (is_dense(spec.fields[i])) {
      columns[i].row_bytes = row_bytes(spec.fields[i]);
      columns[i].data = scratch.allocate(rows * columns[i].row_bytes);
    } else {
      columns[i].tensors = tensors_.data() + rows * next++;
    }
  }
  view_.columns = {columns, spec.fields.size()};
}

}  // namespace penstock
