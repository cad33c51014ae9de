#include "source/arrow_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "base/printable.h"
#include "kernel/gather.h"
#include "penstock/error.h"
#include "sample/packed_field.h"
#include "sample/rows.h"

namespace penstock {
namespace {

void check(ArrowArrayStream& stream, int code, const std::string& word) {
  if (code == 0) return;
  const char* const why = stream.get_last_error(&stream);
  throw ConfigError(fmt::format("{}: the table cannot be read: {}", word,
                                why == nullptr ? fmt::format("error {}", code) : printable(why)));
}

/// Collects the leaves of a struct.
struct LeafFinder {
  const std::string& word;
  std::vector<ArrowLeaf>& leaves;

  /// Adds the leaves; returns their places as a sample of numbers.
  Sample add(const ArrowSchema& schema, const std::string& prefix,
             const std::vector<std::size_t>& route) {
    std::vector<std::pair<std::string, Sample>> items;
    for (std::int64_t i = 0; i < schema.n_children; ++i) {
      const ArrowSchema& child = *schema.children[i];
      const std::string name = child.name == nullptr ? "" : child.name;
      const std::string path = prefix.empty() ? name : fmt::format("{}.{}", prefix, name);
      std::vector<std::size_t> way = route;
      way.push_back(static_cast<std::size_t>(i));
      if (std::ranges::any_of(items, [&](const auto& item) { return item.first == name; }))
        throw ConfigError(fmt::format("{}: two columns are called \"{}\"", word, printable(path)),
                          {}, "rename one of them");
      if (std::string_view(child.format) == "+s") {
        items.emplace_back(name, add(child, path, way));
        continue;
      }
      items.emplace_back(name, Tensor::scalar(static_cast<std::int64_t>(leaves.size())));
      leaves.push_back({path, std::move(way), arrow_type(child, path, word)});
    }
    return Sample::dict(std::move(items));
  }
};

void set_null_value(ArrowLeaf& leaf, const NullValue& value, const std::string& word) {
  const auto wrong = [&](const char* remedy) {
    throw ConfigError(fmt::format("{}: nulls of column \"{}\" ({}) cannot become this value", word,
                                  printable(leaf.path), leaf.type.field({}).text()),
                      {}, remedy);
  };
  leaf.filled = true;
  if (is_variable(leaf.type.dtype)) {
    if (!std::holds_alternative<std::string>(value)) wrong("name a text");
    leaf.text = std::get<std::string>(value);
    return;
  }
  const bool list = leaf.type.kind == ArrowKind::list;
  if (list && std::holds_alternative<std::monostate>(value)) return;
  if (!std::holds_alternative<double>(value))
    wrong(list ? "name a number, or []" : "name a number");
  auto bytes = value_bytes(std::get<double>(value), leaf.type.dtype);
  if (!bytes) return wrong("name a number of the column's type");
  leaf.fill = std::move(*bytes);
}

Failure is_null() {
  return {"the value is null", {}, "name what nulls become, as in nulls={...}, or skip errors"};
}

}  // namespace

ArrowLayout::ArrowLayout(std::string word, const ArrowSchema& schema,
                         const std::map<std::string, NullValue>& nulls)
    : word_(std::move(word)) {
  if (std::string_view(schema.format) != "+s")
    throw ConfigError(fmt::format("{}: this is an array, not a table", word_), {},
                      "make a table of it, with a name for the column");
  const Sample places = LeafFinder{word_, leaves_}.add(schema, "", {});
  if (leaves_.empty()) throw ConfigError(fmt::format("{}: the table has no columns", word_));
  sort_leaves(places);
  for (const auto& [path, value] : nulls) {
    const auto leaf = std::ranges::find(leaves_, path, &ArrowLeaf::path);
    if (leaf == leaves_.end())
      throw ConfigError(
          fmt::format("{}: nulls of column \"{}\", which is not there", word_, printable(path)));
    set_null_value(*leaf, value, word_);
  }
}

void ArrowLayout::sort_leaves(const Sample& places) {
  std::vector<ArrowLeaf> sorted;
  for (const Tensor& place : places.leaves()) {
    ArrowLeaf& leaf = leaves_[static_cast<std::size_t>(place.item<std::int64_t>())];
    spec_.fields.push_back(leaf.type.field(leaf.path));
    sorted.push_back(std::move(leaf));
  }
  spec_.structure = places.structure();
  const auto paths = spec_.structure.paths();
  for (std::size_t i = 0; i < paths.size(); ++i) spec_.fields[i].path = sorted[i].path = paths[i];
  leaves_ = std::move(sorted);
}

void ArrowLayout::identify_values(Digest& digest) const {
  for (const ArrowLeaf& leaf : leaves_) {
    if (!leaf.filled) continue;
    digest.add(leaf.path);
    digest.add({reinterpret_cast<const char*>(leaf.fill.data()), leaf.fill.size()});
    digest.add(leaf.text.value_or(""));
  }
}

std::optional<std::string> ArrowLayout::difference(const ArrowLayout& other) const {
  for (std::size_t i = 0; i < std::max(leaves_.size(), other.leaves_.size()); ++i) {
    if (i == other.leaves_.size() ||
        (i < leaves_.size() && leaves_[i].path != other.leaves_[i].path))
      return fmt::format("column \"{}\" is not where it was", printable(leaves_[i].path));
    const ArrowLeaf& found = other.leaves_[i];
    if (i == leaves_.size()) return fmt::format("column \"{}\" is new", printable(found.path));
    if (leaves_[i].type != found.type || leaves_[i].children != found.children)
      return fmt::format("column \"{}\" has another type or place", printable(found.path));
  }
  return std::nullopt;
}

ArrowTable::ArrowTable(std::shared_ptr<const ArrowLayout> layout,
                       std::shared_ptr<const ArrowBatches> batches)
    : layout_(std::move(layout)), batches_(std::move(batches)) {
  data_.resize(layout_->leaves().size());
  for (const ArrowArray& batch : *batches_) add_batch(batch);
  for (LeafData& leaf : data_) {
    for (const ArrowChunk& chunk : leaf.chunks) leaf.plain.push_back(chunk.plain());
    if (std::ranges::find(leaf.plain, nullptr) != leaf.plain.end()) leaf.plain.clear();
  }
}

/// Chunks refer to the types of the layout.
void ArrowTable::add_batch(const ArrowArray& batch) {
  const std::string& word = layout_->word();
  if (batch.length < 0 || batch.offset < 0)
    throw ConfigError(fmt::format("{}: a batch has a negative length", word));
  if (batch.length == 0) return;
  parts_.add(static_cast<std::uint64_t>(batch.length));
  for (std::size_t i = 0; i < data_.size(); ++i) {
    const ArrowLeaf& leaf = layout_->leaves()[i];
    ArrowRoute route{&batch};
    for (const std::size_t child : leaf.children) {
      if (route.back()->n_children <= static_cast<std::int64_t>(child))
        throw ConfigError(fmt::format("{}: a batch does not fit the schema", word));
      route.push_back(route.back()->children[child]);
    }
    data_[i].chunks.emplace_back(leaf.type, route, leaf.path, word);
  }
}

std::uint64_t ArrowTable::bytes() const {
  std::uint64_t bytes = 0;
  for (const LeafData& leaf : data_)
    for (const ArrowChunk& chunk : leaf.chunks) bytes += chunk.bytes();
  return bytes;
}

Result<void> ArrowTable::write(const ArrowRowsWanted& wanted, const BlockView& out, Lending lending,
                               Scratch& scratch) const {
  const Scratch::Frame frame(scratch);
  std::size_t count = wanted.rows.size();
  auto* const from = scratch.array<RowPlace>(count);
  if (parts_.parts() == 1) {
    for (std::size_t i = 0; i < count; ++i) from[i] = {0, wanted.rows[i]};
  } else {
    for (std::size_t i = 0; i < count; ++i) from[i] = parts_.find(wanted.rows[i]);
  }
  // Rows from the first bad one on are not needed, but those before it in every column.
  Result<void> bad;
  for (std::size_t field = 0; field < data_.size(); ++field) {
    const Column& column = out.columns[field];
    const auto places = wanted.places.first(count);
    auto done = column.dense() ? write_dense(field, {from, count}, places, column, scratch)
                               : write_open(field, {from, count}, places, column.tensors, lending);
    if (done) continue;
    Failure& failure = done.failure();
    failure.message =
        fmt::format("column \"{}\": {}", printable(layout_->leaves()[field].path), failure.message);
    count = failure.row;
    failure.row = wanted.places[count];
    bad = std::move(done);
  }
  return bad;
}

/// The row of a failure counts the wanted rows.
Result<void> ArrowTable::write_dense(std::size_t leaf, std::span<const RowPlace> from,
                                     std::span<const std::uint32_t> places, const Column& column,
                                     Scratch& scratch) const {
  const LeafData& data = data_[leaf];
  if (!data.plain.empty()) {
    const Scratch::Frame frame(scratch);
    const auto** const rows = scratch.array<const std::byte*>(from.size());
    for (std::size_t i = 0; i < from.size(); ++i)
      rows[i] = data.plain[from[i].part] + from[i].row * column.row_bytes;
    scatter_rows_from({rows, from.size()}, column.row_bytes, places, column.data);
    return {};
  }
  for (std::size_t i = 0; i < from.size(); ++i) {
    auto done = copy(leaf, from[i], column.data + places[i] * column.row_bytes);
    if (done) continue;
    done.failure().row = i;
    return done;
  }
  return {};
}

Result<void> ArrowTable::write_open(std::size_t leaf, std::span<const RowPlace> from,
                                    std::span<const std::uint32_t> places, Tensor* tensors,
                                    Lending lending) const {
  for (std::size_t i = 0; i < from.size(); ++i) {
    auto value = value_at(leaf, from[i]);
    if (!value) {
      value.failure().row = i;
      return std::move(value.failure());
    }
    tensors[places[i]] = lending == Lending::views
                             ? std::move(*value)
                             : Tensor::copy(value->dtype(), value->shape(), value->raw());
  }
  return {};
}

/// A value of fixed size.
Result<void> ArrowTable::copy(std::size_t leaf, const RowPlace& at, std::byte* to) const {
  const ArrowLeaf& column = layout_->leaves()[leaf];
  const ArrowChunk& chunk = data_[leaf].chunks[at.part];
  const auto row = static_cast<std::int64_t>(at.row);
  const bool null = chunk.is_null(row);
  if (null && !column.filled) return is_null();
  if (column.type.kind == ArrowKind::fixed_list) {
    const std::size_t unit = dtype_size(column.type.dtype);
    if (null) {
      const std::size_t values = shape_values(column.type.inside);
      for (std::size_t i = 0; i < values; ++i) std::memcpy(to + i * unit, column.fill.data(), unit);
      return {};
    }
    auto items = chunk.items(row, column.filled ? column.fill.data() : nullptr, nullptr);
    if (!items) return std::move(items.failure());
    if (!items->raw().empty()) std::memcpy(to, items->raw().data(), items->raw().size());
  } else if (null) {
    std::memcpy(to, column.fill.data(), column.fill.size());
  } else {
    return chunk.copy_value(row, to);
  }
  return {};
}

Result<Tensor> ArrowTable::value_of(std::size_t leaf, std::uint64_t row) const {
  return value_at(leaf, parts_.find(row));
}

Result<Tensor> ArrowTable::value_at(std::size_t leaf, const RowPlace& at) const {
  const ArrowLeaf& column = layout_->leaves()[leaf];
  const ArrowChunk& chunk = data_[leaf].chunks[at.part];
  const auto row = static_cast<std::int64_t>(at.row);
  const bool null = chunk.is_null(row);
  if (null && !column.filled) return is_null();
  if (is_variable(column.type.dtype)) {
    if (null) return Tensor::bytes(column.text.value_or(""), column.type.dtype);
    auto text = chunk.text(row);
    if (!text) return std::move(text.failure());
    return Tensor::view(column.type.dtype, {}, std::as_bytes(std::span(*text)), batches_);
  }
  if (column.type.kind == ArrowKind::list) {
    if (null) {
      Shape empty = column.type.field({}).shape;
      empty.front() = 0;
      return Tensor::copy(column.type.dtype, std::move(empty), {});
    }
    return chunk.items(row, column.fill.empty() ? nullptr : column.fill.data(), batches_);
  }
  const Shape& shape = column.type.inside;
  std::vector<std::byte> bytes(shape_values(shape) * dtype_size(column.type.dtype));
  if (auto done = copy(leaf, at, bytes.data()); !done) return std::move(done.failure());
  return Tensor::copy(column.type.dtype, shape, bytes);
}

std::shared_ptr<ArrowBatches> read_batches(ArrowArrayStream& stream, const std::string& word,
                                           const std::function<bool()>& wanted) {
  auto batches = std::make_shared<ArrowBatches>();
  while (!wanted || wanted()) {
    ArrowArray& batch = batches->emplace_back();
    check(stream, stream.get_next(&stream, &batch), word);
    if (batch.release != nullptr) continue;
    batches->pop_back();
    break;
  }
  return batches;
}

std::unique_ptr<const Released<ArrowSchema>> read_schema(ArrowArrayStream& stream,
                                                         const std::string& word) {
  auto schema = std::make_unique<Released<ArrowSchema>>();
  check(stream, stream.get_schema(&stream, schema.get()), word);
  return schema;
}

}  // namespace penstock
