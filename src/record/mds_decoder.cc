// tested in src/record/mds_test.cc
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <ranges>
#include <utility>

#include "base/printable.h"
#include "base/utf8.h"
#include "penstock/error.h"
#include "record/mds.h"

namespace penstock {
namespace {

constexpr std::size_t kInferRecords = 16;
constexpr std::size_t kRankMax = 32;  // that of NumPy

[[noreturn]] void refuse(const std::string& message, const std::string& remedy = {}) {
  throw ConfigError("from_mds: " + message, {}, remedy);
}

/// How the values of a column are stored.
struct Encoding {
  enum class Kind : std::uint8_t {
    unknown,
    value,        // bytes, text, a number, or an array of a known shape
    shaped,       // an array after its shape
    typed_shaped  // an array after its dtype and shape
  };
  Kind kind = Kind::unknown;
  Dtype dtype = Dtype::bytes;
  Shape shape = {};
};

std::optional<Dtype> number_type(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, Dtype>, 12> kTypes = {{
      {"int", Dtype::i64},
      {"uint8", Dtype::u8},
      {"uint16", Dtype::u16},
      {"uint32", Dtype::u32},
      {"uint64", Dtype::u64},
      {"int8", Dtype::i8},
      {"int16", Dtype::i16},
      {"int32", Dtype::i32},
      {"int64", Dtype::i64},
      {"float16", Dtype::f16},
      {"float32", Dtype::f32},
      {"float64", Dtype::f64},
  }};
  const auto* const found =
      std::ranges::find(kTypes, name, &std::pair<std::string_view, Dtype>::first);
  if (found == kTypes.end()) return std::nullopt;
  return found->second;
}

/// Of "ndarray", "ndarray:DTYPE" and "ndarray:DTYPE:2,3".
Encoding array_encoding(std::string_view text) {
  Encoding encoding{Encoding::Kind::typed_shaped};
  if (text.empty()) return encoding;
  text.remove_prefix(1);
  const std::size_t colon = text.find(':');
  const std::optional<Dtype> dtype = number_type(text.substr(0, colon));
  if (!dtype || text.substr(0, colon) == "int") return {};
  encoding.dtype = *dtype;
  encoding.kind = Encoding::Kind::shaped;
  if (colon == std::string_view::npos) return encoding;
  encoding.kind = Encoding::Kind::value;
  text.remove_prefix(colon + 1);
  std::uint64_t values = 1;
  while (true) {
    std::uint32_t size = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    values *= size;
    if (error != std::errc{} || size == 0 || values > UINT32_MAX ||
        encoding.shape.size() == kRankMax)
      return {};
    encoding.shape.push_back(size);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.empty()) return encoding;
    if (!text.starts_with(',')) return {};
    text.remove_prefix(1);
  }
}

Encoding encoding_of(std::string_view name) {
  constexpr std::array<std::string_view, 5> kTexts = {"str", "json", "str_int", "str_float",
                                                      "str_decimal"};
  constexpr std::array<std::string_view, 3> kBytes = {"bytes", "jpeg", "png"};
  if (std::ranges::find(kTexts, name) != kTexts.end())
    return {Encoding::Kind::value, Dtype::string};
  if (std::ranges::find(kBytes, name) != kBytes.end()) return {Encoding::Kind::value, Dtype::bytes};
  if (const auto dtype = number_type(name)) return {Encoding::Kind::value, *dtype};
  if (name == "ndarray" || name.starts_with("ndarray:"))
    return array_encoding(name.substr(std::string_view("ndarray").size()));
  return {};
}

/// An array as it is stored.
struct StoredArray {
  Dtype dtype = Dtype::u8;
  std::size_t rank = 0;
  std::array<std::uint64_t, kRankMax> sizes{};
  std::string_view values = {};
};

Result<std::uint64_t> cut_number(std::string_view& bytes, std::size_t width) {
  if (bytes.size() < width) return Failure{"ends within its shape"};
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data(), width);
  bytes.remove_prefix(width);
  return value;
}

/// The bits of a value, plus 1 for signed integers or 2 for floats.
std::optional<Dtype> coded_dtype(std::uint64_t code) {
  constexpr std::array<std::pair<std::uint64_t, Dtype>, 11> kCodes = {{
      {0x08, Dtype::u8},
      {0x09, Dtype::i8},
      {0x10, Dtype::u16},
      {0x11, Dtype::i16},
      {0x12, Dtype::f16},
      {0x20, Dtype::u32},
      {0x21, Dtype::i32},
      {0x22, Dtype::f32},
      {0x40, Dtype::u64},
      {0x41, Dtype::i64},
      {0x42, Dtype::f64},
  }};
  const auto* const found =
      std::ranges::find(kCodes, code, &std::pair<std::uint64_t, Dtype>::first);
  if (found == kCodes.end()) return std::nullopt;
  return found->second;
}

/// The shape is four times the rank plus the width of a size (0 to 3 for 1, 2, 4 and 8 bytes), in
/// one byte, and the sizes.
Result<StoredArray> read_array(std::string_view bytes, const Encoding& encoding) {
  StoredArray array{encoding.dtype};
  if (encoding.kind == Encoding::Kind::typed_shaped) {
    Result<std::uint64_t> code = cut_number(bytes, 1);
    if (!code.ok()) return std::move(code.failure());
    const std::optional<Dtype> dtype = coded_dtype(*code);
    if (!dtype) return Failure{fmt::format("has an unknown dtype, number {}", *code)};
    array.dtype = *dtype;
  }
  Result<std::uint64_t> form = cut_number(bytes, 1);
  if (!form.ok()) return std::move(form.failure());
  array.rank = static_cast<std::size_t>(*form / 4);
  if (array.rank == 0 || array.rank > kRankMax)
    return Failure{fmt::format("has {} dimensions", array.rank)};
  std::uint64_t expected = dtype_size(array.dtype);
  for (std::size_t i = 0; i < array.rank; ++i) {
    Result<std::uint64_t> size = cut_number(bytes, std::size_t{1} << *form % 4);
    if (!size.ok()) return std::move(size.failure());
    if (*size == 0 || *size > UINT32_MAX) return Failure{fmt::format("has a size of {}", *size)};
    array.sizes[i] = *size;
    expected = expected > UINT32_MAX ? expected : expected * *size;
  }
  if (expected != bytes.size())
    return Failure{fmt::format("has {} bytes of values, and its shape [{}] is of {}", bytes.size(),
                               fmt::join(std::span(array.sizes).first(array.rank), ", "),
                               dtype_name(array.dtype))};
  array.values = bytes;
  return array;
}

struct StoredColumn {
  std::string name;
  std::optional<std::size_t> bytes;
  std::optional<std::size_t> field;  // of the spec, if it is read
  Encoding encoding;
};

/// Calls `visit(column, bytes)` for each column of a sample.
template <typename Visit>
Result<void> visit_columns(std::string_view sample, const std::vector<StoredColumn>& columns,
                           std::size_t varying, Visit visit) {
  constexpr std::size_t kNumber = sizeof(std::uint32_t);
  if (sample.size() < kNumber * varying) return Failure{"the sample ends within its sizes"};
  std::string_view sizes = sample.substr(0, kNumber * varying);
  std::string_view left = sample.substr(sizes.size());
  for (const StoredColumn& column : columns) {
    std::size_t bytes = 0;
    if (column.bytes) {
      bytes = *column.bytes;
    } else {
      std::uint32_t size = 0;
      std::memcpy(&size, sizes.data(), kNumber);
      sizes.remove_prefix(kNumber);
      bytes = size;
    }
    if (bytes > left.size())
      return Failure{fmt::format("column \"{}\" should have {} bytes, and the sample ends after {}",
                                 printable(column.name), bytes, left.size())};
    if (column.field) {
      if (Result<void> visited = visit(column, left.substr(0, bytes)); !visited.ok()) {
        Failure failure = std::move(visited.failure());
        failure.message = fmt::format("column \"{}\" {}", printable(column.name), failure.message);
        failure.where.field = column.name;
        return failure;
      }
    }
    left.remove_prefix(bytes);
  }
  if (!left.empty())
    return Failure{fmt::format("the sample has {} bytes after its columns", left.size())};
  return {};
}

class MdsDecoder final : public RecordDecoder {
 public:
  MdsDecoder(std::vector<StoredColumn> columns, const std::vector<FieldSpec>& fields)
      : columns_(std::move(columns)), spec_(ElementSpec::dict(fields)) {
    for (StoredColumn& column : columns_) {
      if (!column.bytes) ++varying_;
      if (column.field) column.field = spec_.find(column.name);
    }
  }

  [[nodiscard]] const ElementSpec& spec() const override { return spec_; }
  [[nodiscard]] bool lends() const override { return true; }
  Result<void> decode(const RecordBytes& record, const BlockView& out, std::size_t row,
                      Scratch&) const override {
    return visit_columns(record.bytes, columns_, varying_,
                         [&](const StoredColumn& column, std::string_view bytes) {
                           return write(column, bytes, record, out.columns[*column.field], row);
                         });
  }
  void identify(Digest& digest) const override { digest.add(spec_.text()); }

 private:
  Result<void> write(const StoredColumn& column, std::string_view bytes, const RecordBytes& record,
                     const Column& out, std::size_t row) const {
    const FieldSpec& field = spec_.fields[*column.field];
    if (is_variable(field.dtype)) {
      if (field.dtype == Dtype::string && !is_utf8(bytes)) return Failure{"is not UTF-8"};
      out.tensors[row] =
          Tensor::view(field.dtype, {}, std::as_bytes(std::span(bytes)), record.owner);
      return {};
    }
    if (column.encoding.kind == Encoding::Kind::value) {
      std::memcpy(out.data + row * out.row_bytes, bytes.data(), bytes.size());
      return {};
    }
    Result<StoredArray> array = read_array(bytes, column.encoding);
    if (!array.ok()) return std::move(array.failure());
    if (!fits(*array, field))
      return Failure{.message = fmt::format(
                         "is {}[{}], not {}", dtype_name(array->dtype),
                         fmt::join(std::span(array->sizes).first(array->rank), ", "), field.text()),
                     .remedy = "leave the column out with `columns`, or skip errors"};
    if (out.dense()) {
      std::memcpy(out.data + row * out.row_bytes, array->values.data(), array->values.size());
    } else {
      // A copy: the values lie at any address.
      out.tensors[row] = Tensor::copy(
          array->dtype, Shape(array->sizes.begin(), array->sizes.begin() + array->rank),
          std::as_bytes(std::span(array->values)));
    }
    return {};
  }

  static bool fits(const StoredArray& array, const FieldSpec& field) {
    if (array.dtype != field.dtype || array.rank != field.shape.size()) return false;
    for (std::size_t i = 0; i < array.rank; ++i)
      if (field.shape[i] != kUnknown && std::cmp_not_equal(field.shape[i], array.sizes[i]))
        return false;
    return true;
  }

  std::vector<StoredColumn> columns_;
  std::size_t varying_ = 0;  // columns without a fixed size
  ElementSpec spec_;
};

/// The columns with those that are read marked, whose encodings are known.
std::vector<StoredColumn> chosen_columns(const MdsIndex& index, const MdsOptions& options) {
  std::vector<StoredColumn> columns;
  for (const MdsColumn& stored : index.columns) {
    StoredColumn column{stored.name, {}, {}, encoding_of(stored.encoding)};
    if (stored.bytes) column.bytes = static_cast<std::size_t>(*stored.bytes);
    const bool wanted = options.columns.empty() ||
                        std::ranges::find(options.columns, stored.name) != options.columns.end();
    if (wanted) {
      column.field = 0;
      const Encoding& encoding = column.encoding;
      const bool fixed = encoding.kind == Encoding::Kind::value && !is_variable(encoding.dtype);
      const std::uint64_t bytes =
          fixed ? shape_values(encoding.shape) * dtype_size(encoding.dtype) : 0;
      if (encoding.kind == Encoding::Kind::unknown || fixed != stored.bytes.has_value() ||
          (fixed && bytes != *stored.bytes))
        refuse(fmt::format("the encoding \"{}\" of column \"{}\" is not known",
                           printable(stored.encoding), printable(stored.name)),
               "read the other columns, by `columns`, or write the data in another encoding");
    }
    columns.push_back(std::move(column));
  }
  const auto names = std::views::transform(index.columns, &MdsColumn::name);
  for (const std::string& name : options.columns)
    if (std::ranges::find(names, name) == names.end())
      refuse(fmt::format("there is no column \"{}\"; there are {}", printable(name),
                         fmt::join(names, ", ")));
  return columns;
}

/// Sets what only samples tell: the dtypes and ranks of arrays.
void infer_arrays(const std::vector<StoredColumn>& columns, const FirstRecords& first,
                  std::vector<FieldSpec>& fields) {
  const auto varying = static_cast<std::size_t>(std::ranges::count(
      columns, false, [](const StoredColumn& column) { return column.bytes.has_value(); }));
  std::string reason = "it has no samples";
  for (const std::string& record : first.records) {
    std::vector<FieldSpec> found = fields;
    Result<void> visited =
        visit_columns(record, columns, varying,
                      [&](const StoredColumn& column, std::string_view bytes) -> Result<void> {
                        if (column.encoding.kind == Encoding::Kind::value) return {};
                        Result<StoredArray> array = read_array(bytes, column.encoding);
                        if (!array.ok()) return std::move(array.failure());
                        FieldSpec& field = *std::ranges::find(found, column.name, &FieldSpec::path);
                        field.dtype = array->dtype;
                        if (field.shape.empty()) field.shape.assign(array->rank, kUnknown);
                        return {};
                      });
    if (visited.ok()) {
      fields = std::move(found);
      return;
    }
    reason = visited.failure().message;
  }
  refuse(fmt::format("the arrays of {} have no known shape: {}", printable(first.file), reason));
}

void add_shapes(const std::vector<StoredColumn>& columns, const MdsOptions& options,
                std::vector<FieldSpec>& fields) {
  for (const auto& [name, shape] : options.shapes) {
    const auto column = std::ranges::find(columns, name, &StoredColumn::name);
    if (column == columns.end() || !column->field || column->encoding.kind == Encoding::Kind::value)
      refuse(fmt::format("`shapes` names \"{}\", which is no array of varying shape that is read",
                         printable(name)));
    bool possible = !shape.empty() && shape.size() <= kRankMax;
    std::uint64_t values = 1;
    for (const std::int64_t size : shape) {
      possible = possible && (size == kUnknown || (size > 0 && size <= UINT32_MAX));
      if (possible && size != kUnknown) values *= static_cast<std::uint64_t>(size);
      possible = possible && values <= UINT32_MAX;
    }
    if (!possible)
      refuse(fmt::format("the shape of \"{}\" cannot be {}", printable(name), shape_text(shape)));
    std::ranges::find(fields, name, &FieldSpec::path)->shape = shape;
  }
}

}  // namespace

RecordKind mds_kind(const MdsIndex& index, const MdsOptions& options) {
  std::vector<StoredColumn> columns = chosen_columns(index, options);
  std::vector<FieldSpec> fields;
  for (const StoredColumn& column : columns) {
    if (!column.field) continue;
    fields.push_back({column.name, column.encoding.dtype, column.encoding.shape});
  }
  add_shapes(columns, options, fields);
  const bool inferred = std::ranges::any_of(columns, [&options](const StoredColumn& column) {
    const Encoding::Kind how = column.encoding.kind;
    return column.field &&
           (how == Encoding::Kind::typed_shaped ||
            (how == Encoding::Kind::shaped && !options.shapes.contains(column.name)));
  });
  RecordKind kind;
  kind.word = "from_mds";
  kind.scanning = "mds";
  kind.scanner = make_mds_scanner;
  kind.infer_records = inferred ? kInferRecords : 0;
  kind.decoder = [columns, fields, inferred](const FirstRecords& first) {
    std::vector<FieldSpec> known = fields;
    if (inferred) infer_arrays(columns, first, known);
    return std::make_shared<const MdsDecoder>(columns, known);
  };
  return kind;
}

}  // namespace penstock
