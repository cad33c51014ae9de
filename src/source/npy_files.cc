#include "source/npy_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/json.h"
#include "base/memory.h"
#include "base/printable.h"
#include "codec/npy_header.h"
#include "penstock/error.h"
#include "record/zip_members.h"
#include "source/find_files.h"
#include "source/fixed_rows.h"

namespace penstock {
namespace {

constexpr const char* kWord = "from_npy";

/// An array of a file.
struct NpyArray {
  std::string name;  // in an npz
  Dtype dtype = Dtype::u8;
  Shape shape;  // of a row
  std::uint64_t rows = 0;
  RowRun run;
};

/// A file whose headers are read. Its functions throw errors that name it.
class NpyFile {
 public:
  NpyFile(Io& io, const FoundFile& file)
      : io_(io),
        handle_(std::make_shared<const FileHandle>(file.path, file.bytes, file.modified_ns)),
        read_([this](std::uint64_t offset, std::span<std::byte> out) {
          return io_.read_at(*handle_, offset, out);
        }) {
    Bytes start(std::min<std::uint64_t>(kNpyStart, file.bytes));
    must(read_(0, start));
    is_npy_ = has_text(start, 0, "\x93NUMPY");
    const bool is_zip = has_text(start, 0, "PK\x03\x04") || has_text(start, 0, "PK\x05\x06");
    if (!is_npy_ && !is_zip)
      refuse("it is neither an npy nor an npz file",
             "name the files of np.save and np.savez alone, as in \"data/*.npy\"");
    if (is_zip) members_ = must(list_zip_members(read_, file.bytes));
  }
  NpyFile(const NpyFile&) = delete;
  NpyFile& operator=(const NpyFile&) = delete;

  [[nodiscard]] const std::shared_ptr<const FileHandle>& handle() const { return handle_; }
  [[nodiscard]] bool is_npy() const { return is_npy_; }

  /// Leaves out the arrays of an npz that are not among `fields`; an empty list leaves out none.
  void choose(const std::vector<std::string>& fields) {
    if (is_npy_ && !fields.empty())
      refuse("fields are those of an npz, and it is an npy", "leave fields out");
    std::vector<std::string> names;
    for (const ZipMember& member : members_) {
      std::string name = member.name;
      const bool is_array = name.ends_with(".npy");
      if (is_array) name.resize(name.size() - 4);
      names.push_back(name);
      if (!fields.empty() && std::ranges::find(fields, name) == fields.end()) continue;
      if (!is_array)
        refuse(fmt::format("it contains {}, which is not an array", printable(member.name)),
               fmt::format("choose its arrays: fields = {}", names_of_arrays()));
      if (name.empty() || name.find('/') != std::string::npos)
        refuse(fmt::format("a field cannot be called \"{}\"", printable(name)),
               "choose the other arrays with fields, or save it under another name");
      chosen_.emplace_back(std::move(name), member);
    }
    for (const std::string& field : fields)
      if (std::ranges::find(names, field) == names.end())
        refuse(fmt::format("it has no array \"{}\"", printable(field)),
               fmt::format("it has: {}", fmt::join(names, ", ")));
    if (!is_npy_ && chosen_.empty()) refuse("it has no arrays", "name another file");
  }

  /// Of the arrays that are unpacked into memory.
  [[nodiscard]] std::uint64_t unpacked_bytes() const {
    std::uint64_t bytes = 0;
    for (const auto& [name, member] : chosen_)
      if (member.deflated && __builtin_add_overflow(bytes, member.bytes, &bytes)) return UINT64_MAX;
    return bytes;
  }

  /// Of an npy one, without a name; of an npz by name.
  [[nodiscard]] std::vector<NpyArray> arrays() const {
    std::vector<NpyArray> arrays;
    if (is_npy_) arrays.push_back(array_of("", {0, handle_->bytes(), nullptr}));
    for (const auto& [name, member] : chosen_) {
      if (!member.deflated) {
        arrays.push_back(array_of(name, {member.at, member.bytes, nullptr}));
      } else {
        auto bytes = std::make_shared<const Bytes>(must(unpack_zip_member(read_, member)));
        arrays.push_back(array_of(name, {0, member.bytes, std::move(bytes)}));
      }
    }
    std::ranges::sort(arrays, {}, &NpyArray::name);
    for (const NpyArray& array : arrays)
      if (array.rows != arrays.front().rows)
        refuse(fmt::format("{} has {} rows, but {} has {}", printable(arrays.front().name),
                           arrays.front().rows, printable(array.name), array.rows),
               "choose arrays with as many rows: fields = ...");
    return arrays;
  }

  [[noreturn]] void refuse(const std::string& why, const std::string& remedy) const {
    throw ConfigError(fmt::format("{}: {}: {}", kWord, printable(handle_->path()), why), where(),
                      remedy);
  }

 private:
  /// An npy file: all of the file, a part of it, or unpacked.
  struct Place {
    std::uint64_t offset;
    std::uint64_t bytes;
    std::shared_ptr<const Bytes> memory;
  };

  [[nodiscard]] Where where() const {
    Where where;
    where.file = handle_->path();
    return where;
  }
  [[noreturn]] void refuse(const Failure& failure) const {
    if (failure.transient())
      throw IoError(fmt::format("{}: {}", kWord, failure.message), where(), failure.remedy);
    refuse(failure.message, failure.remedy);
  }
  void must(const Result<void>& done) const {
    if (!done) refuse(done.failure());
  }
  template <typename T>
  T must(Result<T> result) const {
    if (!result) refuse(result.failure());
    return std::move(*result);
  }

  [[nodiscard]] std::string names_of_arrays() const {
    std::vector<std::string> names;
    for (const ZipMember& member : members_)
      if (member.name.ends_with(".npy"))
        names.push_back(fmt::format("\"{}\"", member.name.substr(0, member.name.size() - 4)));
    return fmt::format("{{{}}}", fmt::join(names, ", "));
  }

  [[nodiscard]] Bytes start_of(const Place& place, std::uint64_t bytes) const {
    Bytes start(std::min(bytes, place.bytes));
    if (place.memory) {
      std::ranges::copy_n(place.memory->begin(), static_cast<std::ptrdiff_t>(start.size()),
                          start.begin());
    } else {
      must(read_(place.offset, start));
    }
    return start;
  }

  [[nodiscard]] NpyArray array_of(const std::string& name, const Place& place) const {
    const std::string what = name.empty() ? "the array" : fmt::format("\"{}\"", printable(name));
    const Bytes start = start_of(place, kNpyStart);
    if (!has_text(start, 0, "\x93NUMPY"))
      refuse(fmt::format("{} is not an npy file", what), "write it again with np.savez");
    const Bytes text = start_of(place, must(npy_header_bytes(start)));
    const NpyHeader header = must(read_npy_header(text));
    const NpyType type = must(npy_type(header.descr));
    if (!header.by_rows()) refuse(npy_by_columns());
    if (header.shape.empty())
      refuse(fmt::format("{} has no dimensions, so it has no rows", what),
             "save it with np.atleast_1d(array)");
    NpyArray array{.name = name,
                   .dtype = type.dtype,
                   .shape = {header.shape.begin() + 1, header.shape.end()},
                   .rows = static_cast<std::uint64_t>(header.shape.front()),
                   .run = {}};
    if (type.kind != NpyType::Kind::number && !array.shape.empty())
      refuse(fmt::format("{} has strings in {} dimensions", what, header.shape.size()),
             "save one string per row: an array of one dimension");
    array.run = run_of(what, type, header, place);
    return array;
  }

  /// Where the rows are. Throws unless they are the rest of the file, exactly.
  [[nodiscard]] RowRun run_of(const std::string& what, const NpyType& type, const NpyHeader& header,
                              const Place& place) const {
    std::uint64_t row_bytes = type.value_bytes;
    std::uint64_t bytes = 0;
    bool fits = true;
    for (std::size_t i = 1; i < header.shape.size(); ++i)
      fits = fits && !__builtin_mul_overflow(row_bytes, static_cast<std::uint64_t>(header.shape[i]),
                                             &row_bytes);
    fits = fits && !__builtin_mul_overflow(
                       row_bytes, static_cast<std::uint64_t>(header.shape.front()), &bytes);
    const std::uint64_t rest = place.bytes - header.values_at;
    if (!fits || bytes > rest)
      refuse(fmt::format("{}, {}{}, is cut: {} bytes of values are there", what, header.descr,
                         shape_text(header.shape), rest),
             "write it again, or fetch it again if it was copied");
    if (bytes < rest)
      refuse(fmt::format("after {}, {}{}, there are {} bytes more", what, header.descr,
                         shape_text(header.shape), rest - bytes),
             "save one array in each file");
    return {place.offset + header.values_at, row_bytes, form_of(type), place.memory};
  }

  static RowForm form_of(const NpyType& type) {
    if (type.kind == NpyType::Kind::bytes) return RowForm::padded_bytes;
    if (type.kind == NpyType::Kind::text)
      return type.high_byte_first ? RowForm::utf32_swapped : RowForm::utf32;
    if (type.dtype == Dtype::boolean) return RowForm::truth;
    return type.high_byte_first ? RowForm::swapped : RowForm::raw;
  }

  Io& io_;
  const std::shared_ptr<const FileHandle> handle_;
  const ReadPart read_;
  bool is_npy_ = false;
  std::vector<ZipMember> members_;
  std::vector<std::pair<std::string, ZipMember>> chosen_;
};

ElementSpec spec_of(const NpyFile& file, const std::vector<NpyArray>& arrays) {
  if (file.is_npy()) return ElementSpec::single(arrays.front().dtype, arrays.front().shape);
  std::vector<FieldSpec> fields;
  fields.reserve(arrays.size());
  for (const NpyArray& array : arrays) fields.push_back({array.name, array.dtype, array.shape});
  return ElementSpec::dict(std::move(fields));
}

/// Throws ConfigError if unpacking would need too much memory, before any is taken.
void check_memory(const std::vector<std::unique_ptr<NpyFile>>& files,
                  const NpyFileOptions& options) {
  constexpr std::uint64_t kDefaultMax = std::uint64_t{4} << 30;
  const std::uint64_t most =
      options.bytes_max ? *options.bytes_max : std::min(kDefaultMax, memory_available() / 4);
  std::uint64_t bytes = 0;
  for (const auto& file : files) {
    const bool overflows = __builtin_add_overflow(bytes, file->unpacked_bytes(), &bytes);
    if (overflows || bytes > most)
      file->refuse(fmt::format("its compressed arrays, with those of the files before, need {} "
                               "bytes of memory; bytes_max is {}",
                               overflows ? UINT64_MAX : bytes, most),
                   "save with np.savez, which is read in place, or raise bytes_max");
  }
}

}  // namespace

std::shared_ptr<const Source> make_npy_files(Io& io, const std::vector<std::string>& paths,
                                             const NpyFileOptions& options) {
  std::vector<std::unique_ptr<NpyFile>> files;
  std::vector<std::string> found;
  for (const FoundFile& file : find_files(io, kWord, paths)) {
    files.push_back(std::make_unique<NpyFile>(io, file));
    files.back()->choose(options.fields);
    found.push_back(file.path);
  }
  check_memory(files, options);
  const std::size_t folder = shared_folder(found).size();
  FixedRows rows;
  rows.word = kWord;
  rows.arguments = {{"paths", paths}, {"fields", options.fields}};
  if (options.bytes_max) rows.arguments["bytes_max"] = *options.bytes_max;
  std::uint64_t end = 0;
  for (const auto& file : files) {
    const std::vector<NpyArray> arrays = file->arrays();
    ElementSpec spec = spec_of(*file, arrays);
    if (rows.files.empty())
      rows.spec = std::move(spec);
    else if (spec != rows.spec)
      file->refuse(fmt::format("its rows are {}, those of {} are {}", spec.text(),
                               printable(found.front()), rows.spec.text()),
                   "read files of other arrays with another from_npy, and zip or concatenate");
    end += arrays.front().rows;
    rows.files.push_back({file->handle(), file->handle()->path().substr(folder), end, {}});
    for (const NpyArray& array : arrays) rows.files.back().runs.push_back(array.run);
  }
  return make_fixed_rows(std::move(rows));
}

}  // namespace penstock
