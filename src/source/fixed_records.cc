#include "source/fixed_records.h"

#include <fmt/format.h>

#include <utility>

#include "base/json.h"
#include "base/printable.h"
#include "penstock/error.h"
#include "source/find_files.h"
#include "source/fixed_rows.h"

namespace penstock {
namespace {

constexpr const char* kWord = "from_records";
constexpr std::uint64_t kRecordBytesMax = std::uint64_t{1} << 40;

/// Throws unless a record has the bytes of its values.
void check_values(std::uint64_t record_bytes, Dtype dtype, const Shape& shape) {
  const std::string what = fmt::format("{}{}", dtype_name(dtype), shape_text(shape));
  if (is_variable(dtype))
    throw ConfigError(fmt::format("{}: records are of numbers, not {}", kWord, what), {},
                      "leave dtype out: a record is then one field of bytes");
  std::uint64_t bytes = dtype_size(dtype);
  for (const std::int64_t size : shape)
    if (size < 0 || __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(size), &bytes))
      throw ConfigError(fmt::format("{}: a record cannot be {}", kWord, what), {},
                        "give the size of each dimension");
  if (bytes != record_bytes)
    throw ConfigError(
        fmt::format("{}: {} needs {} bytes, a record has {}", kWord, what, bytes, record_bytes), {},
        "dtype and shape describe a whole record");
}

void check(std::uint64_t record_bytes, const FixedRecordOptions& options) {
  if (record_bytes == 0 || record_bytes > kRecordBytesMax)
    throw ConfigError(fmt::format("{}: record_bytes must be from 1 to {}, got {}", kWord,
                                  kRecordBytesMax, record_bytes));
  if (options.partial != "refuse" && options.partial != "drop")
    throw ConfigError(fmt::format("{}: partial is \"{}\"", kWord, printable(options.partial)), {},
                      "\"refuse\" or \"drop\"");
  if (options.dtype) {
    check_values(record_bytes, *options.dtype, options.shape);
  } else if (!options.shape.empty()) {
    throw ConfigError(fmt::format("{}: a shape needs a dtype", kWord), {}, "set dtype");
  }
}

std::uint64_t records_in(const FoundFile& file, std::uint64_t record_bytes,
                         const FixedRecordOptions& options) {
  const auto refuse = [&](const std::string& why) {
    Where where;
    where.file = file.path;
    throw ConfigError(
        fmt::format("{}: {} has {} bytes, {}", kWord, printable(file.path), file.bytes, why), where,
        "check record_bytes, or leave the rest out with partial=\"drop\"");
  };
  const bool drop = options.partial == "drop";
  if (options.header_bytes > file.bytes ||
      options.footer_bytes > file.bytes - options.header_bytes) {
    if (drop) return 0;
    refuse(fmt::format("fewer than its header and footer of {} and {}", options.header_bytes,
                       options.footer_bytes));
  }
  const std::uint64_t bytes = file.bytes - options.header_bytes - options.footer_bytes;
  if (!drop && bytes % record_bytes != 0) {
    const bool bare = options.header_bytes == 0 && options.footer_bytes == 0;
    refuse(fmt::format("{}not a whole number of records of {}: {} bytes too many",
                       bare ? "" : fmt::format("{} without header and footer, ", bytes),
                       record_bytes, bytes % record_bytes));
  }
  return bytes / record_bytes;
}

Json arguments_of(const std::vector<std::string>& paths, std::uint64_t record_bytes,
                  const FixedRecordOptions& options) {
  Json json{{"paths", paths},
            {"record_bytes", record_bytes},
            {"header_bytes", options.header_bytes},
            {"footer_bytes", options.footer_bytes},
            {"partial", options.partial}};
  if (options.dtype) json["dtype"] = dtype_name(*options.dtype);
  if (options.dtype) json["shape"] = options.shape;
  return json;
}

}  // namespace

std::shared_ptr<const Source> make_fixed_records(Io& io, const std::vector<std::string>& paths,
                                                 std::uint64_t record_bytes,
                                                 const FixedRecordOptions& options) {
  check(record_bytes, options);
  FixedRows rows;
  rows.word = kWord;
  rows.spec = options.dtype ? ElementSpec::single(*options.dtype, options.shape)
                            : ElementSpec::single(Dtype::bytes);
  rows.arguments = arguments_of(paths, record_bytes, options);
  RowForm form = RowForm::bytes;
  if (options.dtype) form = *options.dtype == Dtype::boolean ? RowForm::truth : RowForm::raw;
  std::vector<FoundFile> files = find_files(io, kWord, paths);
  std::vector<std::string> found;
  found.reserve(files.size());
  for (const FoundFile& file : files) found.push_back(file.path);
  const std::size_t folder = shared_folder(found).size();
  std::uint64_t end = 0;
  for (FoundFile& file : files) {
    end += records_in(file, record_bytes, options);
    rows.files.push_back(
        {std::make_shared<const FileHandle>(file.path, file.bytes, file.modified_ns),
         file.path.substr(folder),
         end,
         {{options.header_bytes, record_bytes, form}}});
  }
  return make_fixed_rows(std::move(rows));
}

}  // namespace penstock
