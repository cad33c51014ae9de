// tested in src/record/litdata_test.cc
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "base/printable.h"
#include "base/utf8.h"
#include "penstock/error.h"
#include "record/decompressor.h"
#include "record/litdata.h"
#include "record/litdata_value.h"

namespace penstock {
namespace {

using Kind = LitDataType::Kind;

constexpr std::size_t kInferRecords = 16;
constexpr std::size_t kItemBytesMax = std::size_t{1} << 30;

[[noreturn]] void refuse(const std::string& message, const std::string& remedy = {}) {
  throw ConfigError("from_litdata: " + message, {}, remedy);
}

struct LitDataLeaf {
  std::string path;
  LitDataType type;
  bool read = false;
  std::size_t field = 0;  // of the spec, if it is read
};

/// How an item is stored.
struct LitDataItem {
  std::vector<LitDataLeaf> leaves;
  bool sized = true;  // the sizes of the leaves are in front of them
  bool compressed = false;
};

/// "field \"a\"", or "the item" if it is one value.
std::string name_of(const LitDataLeaf& leaf) {
  return leaf.path.empty() ? "the item" : fmt::format("field \"{}\"", printable(leaf.path));
}

/// Calls `visit(leaf, bytes)` for each leaf of an item that is read.
template <typename Visit>
Result<void> visit_leaves(std::string_view item, const LitDataItem& form, Visit visit) {
  constexpr std::size_t kNumber = sizeof(std::uint32_t);
  const std::size_t sizes_bytes = form.sized ? kNumber * form.leaves.size() : 0;
  if (item.size() < sizes_bytes) return Failure{"the item ends within its sizes"};
  std::string_view left = item.substr(sizes_bytes);
  for (std::size_t i = 0; i < form.leaves.size(); ++i) {
    const LitDataLeaf& leaf = form.leaves[i];
    std::size_t bytes = left.size();
    if (form.sized) {
      std::uint32_t size = 0;
      std::memcpy(&size, item.data() + kNumber * i, kNumber);
      bytes = size;
    }
    if (bytes > left.size())
      return Failure{fmt::format("{} should have {} bytes, and the item ends after {}",
                                 name_of(leaf), bytes, left.size())};
    if (leaf.read) {
      if (Result<void> visited = visit(leaf, left.substr(0, bytes)); !visited.ok()) {
        Failure failure = std::move(visited.failure());
        failure.message = fmt::format("{} {}", name_of(leaf), failure.message);
        failure.where.field = leaf.path;
        return failure;
      }
    }
    left.remove_prefix(bytes);
  }
  if (!left.empty())
    return Failure{fmt::format("the item has {} bytes after its values", left.size())};
  return {};
}

/// An item that was compressed for itself. One that is none is stored as it is.
Result<std::string> decompressed(std::string_view item) {
  constexpr std::size_t kPiece = std::size_t{64} << 10;
  if (compression_of(item.substr(0, 4), false) != Compression::zstd) return std::string(item);
  const auto decompressor = Decompressor::make(Compression::zstd);
  std::span<const std::byte> in = std::as_bytes(std::span(item));
  std::string text;
  while (true) {
    const std::size_t before = text.size();
    if (before > kItemBytesMax) return Failure{"the item is larger than 1 GB"};
    const std::size_t room = std::max(kPiece, before);
    text.resize(before + room);
    Result<Decompressor::Progress> progress =
        decompressor->run(in, std::as_writable_bytes(std::span(text)).subspan(before));
    if (!progress.ok()) return std::move(progress.failure());
    in = in.subspan(progress->read);
    text.resize(before + progress->written);
    if (progress->written < room) break;
  }
  if (Result<void> done = decompressor->finish(); !done.ok()) return std::move(done.failure());
  return text;
}

class LitDataDecoder final : public RecordDecoder {
 public:
  LitDataDecoder(LitDataItem form, ElementSpec spec)
      : form_(std::move(form)), spec_(std::move(spec)) {
    for (LitDataLeaf& leaf : form_.leaves)
      if (leaf.read) leaf.field = spec_.find(leaf.path).value_or(0);
  }

  [[nodiscard]] const ElementSpec& spec() const override { return spec_; }
  [[nodiscard]] bool lends() const override { return true; }
  Result<void> decode(const RecordBytes& record, const BlockView& out, std::size_t row,
                      Scratch&) const override {
    if (!form_.compressed) return decode(record, out, row);
    Result<std::string> item = decompressed(record.bytes);
    if (!item.ok()) return std::move(item.failure());
    const auto owner = std::make_shared<const std::string>(std::move(*item));
    return decode({*owner, owner}, out, row);
  }
  void identify(Digest& digest) const override { digest.add(spec_.text()); }

 private:
  Result<void> decode(const RecordBytes& record, const BlockView& out, std::size_t row) const {
    return visit_leaves(record.bytes, form_, [&](const LitDataLeaf& leaf, std::string_view bytes) {
      return write(leaf, bytes, record, out.columns[leaf.field], row);
    });
  }

  Result<void> write(const LitDataLeaf& leaf, std::string_view bytes, const RecordBytes& record,
                     const Column& out, std::size_t row) const {
    if (leaf.type.array()) return write_array(leaf, bytes, out, row);
    if (leaf.type.kind == Kind::json) {
      Result<std::string> text = litdata_json_text(bytes);
      if (!text.ok()) return std::move(text.failure());
      out.tensors[row] = Tensor::bytes(*text, Dtype::string);
      return {};
    }
    if (leaf.type.kind == Kind::number) {
      if (bytes.size() != dtype_size(leaf.type.dtype))
        return Failure{fmt::format("has {} bytes, not the {} of {}", bytes.size(),
                                   dtype_size(leaf.type.dtype), dtype_name(leaf.type.dtype))};
      if (leaf.type.dtype == Dtype::boolean && bytes[0] != 0 && bytes[0] != 1)
        return Failure{"has a byte other than 0 and 1, expected bool"};
      std::memcpy(out.data + row * out.row_bytes, bytes.data(), bytes.size());
      return {};
    }
    if (leaf.type.kind == Kind::text && !is_utf8(bytes)) return Failure{"is not UTF-8"};
    out.tensors[row] =
        Tensor::view(leaf.type.dtype, {}, std::as_bytes(std::span(bytes)), record.owner);
    return {};
  }

  Result<void> write_array(const LitDataLeaf& leaf, std::string_view bytes, const Column& out,
                           std::size_t row) const {
    Result<LitDataArray> array = read_litdata_array(bytes, leaf.type);
    if (!array.ok()) return std::move(array.failure());
    const FieldSpec& field = spec_.fields[leaf.field];
    const std::span sizes = std::span(array->sizes).first(array->rank);
    if (!fits(*array, field))
      return Failure{.message = fmt::format("is {}[{}], not {}", dtype_name(array->dtype),
                                            fmt::join(sizes, ", "), field.text()),
                     .remedy = "leave the field out with `fields`, or skip errors"};
    if (out.dense()) {
      std::memcpy(out.data + row * out.row_bytes, array->values.data(), array->values.size());
    } else {
      // A copy: the values lie at any address.
      out.tensors[row] = Tensor::copy(array->dtype, Shape(sizes.begin(), sizes.end()),
                                      std::as_bytes(std::span(array->values)));
    }
    return {};
  }

  static bool fits(const LitDataArray& array, const FieldSpec& field) {
    if (array.dtype != field.dtype || array.rank != field.shape.size()) return false;
    for (std::size_t i = 0; i < array.rank; ++i)
      if (field.shape[i] != kUnknown && std::cmp_not_equal(field.shape[i], array.sizes[i]))
        return false;
    return true;
  }

  LitDataItem form_;
  ElementSpec spec_;
};

std::vector<LitDataLeaf> leaves_of(const LitDataIndex& index, const LitDataOptions& options) {
  const std::vector<std::string> paths = index.structure.paths();
  for (const std::string& name : options.fields)
    if (std::ranges::find(paths, name) == paths.end())
      refuse(fmt::format("there is no field \"{}\"; there are \"{}\"", printable(name),
                         fmt::join(paths, "\", \"")));
  std::vector<LitDataLeaf> leaves;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    LitDataLeaf leaf{.path = paths[i], .type = litdata_type(index.serializers[i])};
    if (options.fields.empty() ||
        std::ranges::find(options.fields, leaf.path) != options.fields.end()) {
      leaf.read = true;
      if (leaf.type.kind == Kind::unknown)
        refuse(fmt::format("{} was stored by \"{}\", which is not read", name_of(leaf),
                           printable(index.serializers[i])),
               "read the other fields, by `fields`, or store it as numbers, text, bytes or arrays");
    }
    leaves.push_back(std::move(leaf));
  }
  return leaves;
}

/// A part of a dict or tuple, and the number of its first leaf.
struct StoredPart {
  std::string name;
  const Structure* structure = nullptr;
  std::size_t leaf = 0;
};

/// Adds the fields that are read to a spec, and makes its structure.
class SpecBuilder {
 public:
  /// `fields` has one for each leaf.
  SpecBuilder(const std::vector<LitDataLeaf>& leaves, const std::vector<FieldSpec>& fields)
      : leaves_(leaves), fields_(fields) {}

  ElementSpec build(const Structure& stored) {
    ElementSpec spec;
    spec.structure = add(stored, 0, spec.fields);
    return spec;
  }

 private:
  [[nodiscard]] bool is_read(std::size_t leaf, std::size_t count) const {
    return std::ranges::any_of(std::span(leaves_).subspan(leaf, count), &LitDataLeaf::read);
  }

  /// A tuple of which some parts are not read becomes a dict with the numbers of the others.
  Structure add(const Structure& stored, std::size_t leaf, std::vector<FieldSpec>& fields) const {
    if (stored.kind == Structure::Kind::leaf) {
      fields.push_back(fields_[leaf]);
      return {};
    }
    std::vector<StoredPart> parts;
    for (const auto& [name, child] : stored.children) {
      const std::size_t count = child.paths().size();
      if (is_read(leaf, count)) parts.push_back({name, &child, leaf});
      leaf += count;
    }
    Structure structure{stored.kind, {}};
    if (parts.size() < stored.children.size()) structure.kind = Structure::Kind::dict;
    if (structure.kind == Structure::Kind::dict) std::ranges::sort(parts, {}, &StoredPart::name);
    for (const StoredPart& part : parts)
      structure.children.emplace_back(part.name, add(*part.structure, part.leaf, fields));
    return structure;
  }

  const std::vector<LitDataLeaf>& leaves_;
  const std::vector<FieldSpec>& fields_;
};

/// Sets what only items tell: the dtypes and ranks of arrays.
void infer_arrays(const LitDataItem& form, const FirstRecords& first,
                  std::vector<FieldSpec>& fields) {
  std::string reason = "it has no items";
  for (const std::string& record : first.records) {
    std::vector<FieldSpec> found = fields;
    Result<std::string> item = form.compressed ? decompressed(record) : record;
    Result<void> visited;
    if (item.ok())
      visited = visit_leaves(
          *item, form, [&](const LitDataLeaf& leaf, std::string_view bytes) -> Result<void> {
            if (!leaf.type.described()) return {};
            Result<LitDataArray> array = read_litdata_array(bytes, leaf.type);
            if (!array.ok()) return std::move(array.failure());
            FieldSpec& field = *std::ranges::find(found, leaf.path, &FieldSpec::path);
            field.dtype = array->dtype;
            if (field.shape.empty()) field.shape.assign(array->rank, kUnknown);
            return {};
          });
    if (item.ok() && visited.ok()) {
      fields = std::move(found);
      return;
    }
    reason = item.ok() ? visited.failure().message : item.failure().message;
  }
  refuse(fmt::format("the arrays of {} have no known shape: {}", printable(first.file), reason),
         "read the other fields, by `fields`");
}

void add_shapes(const std::vector<LitDataLeaf>& leaves, const LitDataOptions& options,
                std::vector<FieldSpec>& fields) {
  for (const auto& [name, shape] : options.shapes) {
    const auto leaf = std::ranges::find(leaves, name, &LitDataLeaf::path);
    if (leaf == leaves.end() || !leaf->read || !leaf->type.array())
      refuse(fmt::format("`shapes` names \"{}\", which is no array that is read", printable(name)));
    bool possible = !shape.empty() && shape.size() <= LitDataArray::kRankMax;
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

/// Windows of tokens are arrays of one size.
void add_length(const LitDataIndex& index, const LitDataOptions& options,
                std::vector<FieldSpec>& fields) {
  const std::uint64_t bytes = litdata_token_bytes(index);
  if (bytes == 0)
    refuse("`length` is for chunks of tokens, which `optimize` writes with a TokensLoader");
  if (options.length > UINT32_MAX / bytes)
    refuse(fmt::format("`length` is {} tokens, more than a chunk can have", options.length));
  if (!options.shapes.empty()) refuse("`length` and `shapes` exclude each other");
  fields[0].shape = {static_cast<std::int64_t>(options.length)};
}

void check_paths(std::vector<std::string> paths) {
  std::ranges::sort(paths);
  const auto twice = std::ranges::adjacent_find(paths);
  if (twice != paths.end())
    refuse(fmt::format("two fields have the path \"{}\"", printable(*twice)),
           "rename the one whose name contains a '/'");
}

}  // namespace

std::uint64_t litdata_token_bytes(const LitDataIndex& index) {
  const LitDataType type = litdata_type(index.serializers.at(0));
  return index.tokens && type.kind == Kind::list ? dtype_size(type.dtype) : 0;
}

RecordKind litdata_kind(const LitDataIndex& index, const LitDataOptions& options) {
  check_paths(index.structure.paths());
  const LitDataItem form{leaves_of(index, options), !index.tokens, index.items_compressed};
  if (form.compressed && !can_decompress(Compression::zstd))
    refuse("the items are compressed with zstd, which this build cannot read",
           "build penstock with the library");
  std::vector<FieldSpec> fields;
  bool inferred = false;
  for (const LitDataLeaf& leaf : form.leaves) {
    fields.push_back({leaf.path, leaf.type.dtype, {}});
    if (leaf.type.kind == Kind::list) fields.back().shape = {kUnknown};
    inferred = inferred || (leaf.read && leaf.type.described());
  }
  add_shapes(form.leaves, options, fields);
  if (options.length > 0) add_length(index, options, fields);
  RecordKind kind;
  kind.word = "from_litdata";
  kind.scanning = fmt::format("litdata length={}", options.length);
  kind.scanner = [bytes = options.length * litdata_token_bytes(index)] {
    return make_litdata_scanner(bytes);
  };
  kind.infer_records = inferred ? kInferRecords : 0;
  kind.decoder = [form, fields, inferred, structure = index.structure](const FirstRecords& first) {
    std::vector<FieldSpec> known = fields;
    if (inferred) infer_arrays(form, first, known);
    return std::make_shared<const LitDataDecoder>(form,
                                                  SpecBuilder(form.leaves, known).build(structure));
  };
  return kind;
}

}  // namespace penstock
