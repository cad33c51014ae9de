#include "source/arrow_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <optional>
#include <utility>

#include "base/printable.h"
#include "penstock/error.h"
#include "sample/packed_field.h"
#include "sample/rows.h"
#include "source/arrow_column.h"
#include "source/identify.h"

namespace penstock {
namespace {

/// Calls `release` of a structure of the interface when it is no longer used.
template <typename T>
struct Released : T {
  Released() : T{} {}
  explicit Released(T& taken) : T(std::exchange(taken, T{})) {}
  Released(const Released&) = delete;
  Released& operator=(const Released&) = delete;
  ~Released() {
    if (this->release != nullptr) this->release(this);
  }
};
using Batches = std::deque<Released<ArrowArray>>;

/// A column of the table: a leaf of the element.
struct Leaf {
  std::string path;
  std::vector<std::size_t> children;  // the way from the batch
  ArrowType type;
  std::vector<std::byte> fill = {};  // for nulls of numbers, and in lists
  std::optional<std::string> text = {};
  bool filled = false;  // nulls have a value
  std::vector<ArrowChunk> chunks = {};
};

void check(ArrowArrayStream& stream, int code) {
  if (code == 0) return;
  const char* const why = stream.get_last_error(&stream);
  throw ConfigError(fmt::format("from_arrow: the table cannot be read: {}",
                                why == nullptr ? fmt::format("error {}", code) : printable(why)));
}

/// Adds the leaves of a struct; returns their places as a sample of numbers.
Sample add_leaves(const ArrowSchema& schema, const std::string& prefix,
                  const std::vector<std::size_t>& route, std::vector<Leaf>& leaves) {
  std::vector<std::pair<std::string, Sample>> items;
  for (std::int64_t i = 0; i < schema.n_children; ++i) {
    const ArrowSchema& child = *schema.children[i];
    const std::string name = child.name == nullptr ? "" : child.name;
    const std::string path = prefix.empty() ? name : fmt::format("{}.{}", prefix, name);
    std::vector<std::size_t> way = route;
    way.push_back(static_cast<std::size_t>(i));
    if (std::ranges::any_of(items, [&](const auto& item) { return item.first == name; }))
      throw ConfigError(fmt::format("from_arrow: two columns are called \"{}\"", printable(path)),
                        {}, "rename one of them");
    if (std::string_view(child.format) == "+s") {
      items.emplace_back(name, add_leaves(child, path, way, leaves));
      continue;
    }
    items.emplace_back(name, Tensor::scalar(static_cast<std::int64_t>(leaves.size())));
    leaves.push_back({path, std::move(way), arrow_type(child, path)});
  }
  return Sample::dict(std::move(items));
}

void set_null_value(Leaf& leaf, const NullValue& value) {
  const auto wrong = [&](const char* remedy) {
    throw ConfigError(
        fmt::format("from_arrow: nulls of column \"{}\" ({}) cannot become this value",
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
  if (!bytes) wrong("name a number of the column's type");
  leaf.fill = std::move(*bytes);
}

class ArrowRows final : public Source {
 public:
  ArrowRows(const ArrowSchema& schema, std::shared_ptr<Batches> batches,
            const ArrowOptions& options)
      : name_(options.name), batches_(std::move(batches)) {
    if (std::string_view(schema.format) != "+s")
      throw ConfigError("from_arrow: this is an array, not a table", {},
                        "make a table of it, with a name for the column");
    const Sample places = add_leaves(schema, "", {}, leaves_);
    if (leaves_.empty()) throw ConfigError("from_arrow: the table has no columns");
    sort_leaves(places);
    for (const ArrowArray& batch : *batches_) add_chunks(batch);
    for (const auto& [path, value] : options.nulls) {
      const auto leaf = std::ranges::find(leaves_, path, &Leaf::path);
      if (leaf == leaves_.end())
        throw ConfigError(
            fmt::format("from_arrow: nulls of column \"{}\", which is not there", printable(path)));
      set_null_value(*leaf, value);
    }
  }

  [[nodiscard]] std::string word() const override { return "from_arrow"; }
  [[nodiscard]] std::uint64_t size() const override { return ends_.empty() ? 0 : ends_.back(); }
  [[nodiscard]] const ElementSpec& spec() const override { return spec_; }
  [[nodiscard]] std::string describe() const override {
    return fmt::format("from_arrow({} x {})", size(), spec_.text());
  }
  [[nodiscard]] std::string name() const override { return name_; }
  void identify(Digest& digest) const override {
    digest.add(describe());
    // Some rows: enough to recognize other data without reading all of it.
    constexpr std::uint64_t kRows = 16;
    for (std::uint64_t i = 0; i < kRows && i < size(); ++i) {
      const std::uint64_t number = size() * i / std::min(kRows, size());
      const auto [chunk, row] = place_of(number);
      for (const Leaf& leaf : leaves_) {
        auto tensor = value_of(leaf, chunk, row);
        digest.add(tensor ? tensor->text().substr(0, 64) : std::string_view("null"));
      }
    }
  }

  void identify_values(Digest& digest) const override {
    for (const Leaf& leaf : leaves_) {
      if (!leaf.filled) continue;
      digest.add(leaf.path);
      digest.add({reinterpret_cast<const char*>(leaf.fill.data()), leaf.fill.size()});
      digest.add(leaf.text.value_or(""));
    }
  }

  Result<void> decode(std::span<const std::uint64_t> numbers, std::span<Bytes>,
                      const BlockView& out, const Context& context) const override {
    const Scratch::Frame frame(context.scratch);
    auto* const places = context.scratch.array<RowPlace>(numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) places[i] = place_of(numbers[i]);
    for (std::size_t field = 0; field < leaves_.size(); ++field) {
      const Leaf& leaf = leaves_[field];
      const Column& column = out.columns[field];
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        auto done = column.dense() ? copy(leaf, places[i], column.data + i * column.row_bytes)
                                   : set(leaf, places[i], column.tensors[i]);
        if (done) continue;
        done.failure().message =
            fmt::format("column \"{}\": {}", printable(leaf.path), done.failure().message);
        done.failure().row = i;
        return done;
      }
    }
    return {};
  }

 private:
  struct RowPlace {
    std::size_t chunk = 0;
    std::int64_t row = 0;
  };

  /// Chunks refer to their leaves, which stay where they are from now on.
  void add_chunks(const ArrowArray& batch) {
    if (batch.length < 0 || batch.offset < 0)
      throw ConfigError("from_arrow: a batch has a negative length");
    if (batch.length == 0) return;
    ends_.push_back(size() + static_cast<std::uint64_t>(batch.length));
    for (Leaf& leaf : leaves_) {
      ArrowRoute route{&batch};
      for (const std::size_t child : leaf.children) {
        if (route.back()->n_children <= static_cast<std::int64_t>(child))
          throw ConfigError("from_arrow: a batch does not fit the schema");
        route.push_back(route.back()->children[child]);
      }
      leaf.chunks.emplace_back(leaf.type, route, leaf.path);
    }
  }

  /// Puts the leaves into the order of the element, and makes its spec.
  void sort_leaves(const Sample& places) {
    std::vector<Leaf> sorted;
    for (const Tensor& place : places.leaves()) {
      Leaf& leaf = leaves_[static_cast<std::size_t>(place.item<std::int64_t>())];
      spec_.fields.push_back(leaf.type.field(leaf.path));
      sorted.push_back(std::move(leaf));
    }
    spec_.structure = places.structure();
    const auto paths = spec_.structure.paths();
    for (std::size_t i = 0; i < paths.size(); ++i) spec_.fields[i].path = sorted[i].path = paths[i];
    leaves_ = std::move(sorted);
  }

  [[nodiscard]] RowPlace place_of(std::uint64_t number) const {
    const auto after = std::ranges::upper_bound(ends_, number);
    const auto chunk = static_cast<std::size_t>(after - ends_.begin());
    const std::uint64_t first = chunk == 0 ? 0 : ends_[chunk - 1];
    return {chunk, static_cast<std::int64_t>(number - first)};
  }

  static Failure is_null() {
    return {"the value is null", {}, "name what nulls become, as in nulls={...}, or skip errors"};
  }

  /// A value of fixed size.
  Result<void> copy(const Leaf& leaf, const RowPlace& at, std::byte* to) const {
    const ArrowChunk& chunk = leaf.chunks[at.chunk];
    const bool null = chunk.is_null(at.row);
    if (null && !leaf.filled) return is_null();
    if (leaf.type.kind == ArrowKind::fixed_list) {
      const std::size_t unit = dtype_size(leaf.type.dtype);
      const std::size_t values = shape_values(leaf.type.field({}).shape);
      for (std::size_t i = 0; null && i < values; ++i)
        std::memcpy(to + i * unit, leaf.fill.data(), unit);
      if (null) return {};
      auto items = chunk.items(at.row, leaf.filled ? leaf.fill.data() : nullptr, nullptr);
      if (!items) return std::move(items.failure());
      if (!items->raw().empty()) std::memcpy(to, items->raw().data(), items->raw().size());
    } else if (null) {
      std::memcpy(to, leaf.fill.data(), leaf.fill.size());
    } else {
      return chunk.copy_value(at.row, to);
    }
    return {};
  }

  /// A text or a list.
  Result<void> set(const Leaf& leaf, const RowPlace& at, Tensor& to) const {
    auto value = value_of(leaf, at.chunk, at.row);
    if (!value) return std::move(value.failure());
    to = std::move(*value);
    return {};
  }

  [[nodiscard]] Result<Tensor> value_of(const Leaf& leaf, std::size_t number,
                                        std::int64_t row) const {
    const ArrowChunk& chunk = leaf.chunks[number];
    const bool null = chunk.is_null(row);
    if (null && !leaf.filled) return is_null();
    if (is_variable(leaf.type.dtype)) {
      if (null) return Tensor::bytes(*leaf.text, leaf.type.dtype);
      auto text = chunk.text(row);
      if (!text) return std::move(text.failure());
      return Tensor::view(leaf.type.dtype, {}, std::as_bytes(std::span(*text)), batches_);
    }
    if (leaf.type.kind == ArrowKind::list) {
      Shape empty = leaf.type.field({}).shape;
      empty.front() = 0;
      if (null) return Tensor::copy(leaf.type.dtype, std::move(empty), {});
      return chunk.items(row, leaf.fill.empty() ? nullptr : leaf.fill.data(), batches_);
    }
    const Shape shape = leaf.type.field({}).shape;
    std::vector<std::byte> bytes(shape_values(shape) * dtype_size(leaf.type.dtype));
    if (auto done = copy(leaf, {number, row}, bytes.data()); !done)
      return std::move(done.failure());
    return Tensor::copy(leaf.type.dtype, shape, bytes);
  }

  const std::string name_;
  const std::shared_ptr<Batches> batches_;
  std::vector<std::uint64_t> ends_;  // rows of each batch and those before
  std::vector<Leaf> leaves_;         // in the order of the element
  ElementSpec spec_;
};

}  // namespace

std::shared_ptr<const Source> make_arrow_rows(ArrowArrayStream& given,
                                              const ArrowOptions& options) {
  Released<ArrowArrayStream> stream(given);
  Released<ArrowSchema> schema;
  check(stream, stream.get_schema(&stream, &schema));
  auto batches = std::make_shared<Batches>();
  for (;;) {
    ArrowArray& batch = batches->emplace_back();
    check(stream, stream.get_next(&stream, &batch));
    if (batch.release == nullptr) break;
  }
  batches->pop_back();
  return std::make_shared<const ArrowRows>(schema, std::move(batches), options);
}

std::shared_ptr<const Source> make_arrow_rows(ArrowSchema& schema, ArrowArray& batch,
                                              const ArrowOptions& options) {
  const Released<ArrowSchema> own(schema);
  auto batches = std::make_shared<Batches>();
  batches->emplace_back(batch);
  return std::make_shared<const ArrowRows>(own, std::move(batches), options);
}

}  // namespace penstock
