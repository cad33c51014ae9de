// tested in src/record/tar_test.cc
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <ranges>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "penstock/error.h"
#include "record/tar.h"
#include "record/tar_header.h"
#include "record/unsafe_path.h"
#include "sample/with_type.h"

namespace penstock {
namespace {

constexpr std::string_view kKeyField = "__key__";
constexpr std::size_t kInferRecords = 16;

char lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + ('a' - 'A')) : letter;
}

/// `wanted` is lower case.
bool is_extension(std::string_view extension, std::string_view wanted) {
  return std::ranges::equal(extension, wanted, {}, lower);
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char letter) { return lower(letter); });
  return out;
}

Failure no_member(std::string_view key, const std::vector<std::string>& extensions) {
  return {.message = fmt::format("sample \"{}\" has no member with the extension {}",
                                 printable(key), fmt::join(extensions, " or ")),
          .remedy = "name the extensions that all samples have in `fields`, or skip errors"};
}

template <typename Visit>
Result<void> visit_member(const TarMember& member, const TarName& name, std::string_view key,
                          std::string_view content, Visit& visit) {
  if (!member.refused.empty())
    return Failure{.message = fmt::format("member \"{}\" is {}, which is not read",
                                          printable(member.name), member.refused),
                   .remedy =
                       "write the archive with plain files only (`tar --dereference "
                       "--hard-dereference`), or skip errors"};
  if (is_unsafe_path(member.name))
    return Failure{
        .message = fmt::format("member \"{}\" has an unsafe name", printable(member.name)),
        .remedy =
            "names are relative, without \"..\": write the archive again, or skip "
            "errors"};
  if (name.key != key)
    return Failure{fmt::format("member \"{}\" is not of sample \"{}\"", printable(member.name),
                               printable(key))};
  return visit(name, content);
}

/// Calls `visit(name, content)` for every member that belongs to the sample; returns its key.
template <typename Visit>
Result<std::string_view> visit_members(std::string_view record, std::string& key, Visit visit) {
  TarHeaders headers;
  bool first = true;
  for (std::size_t at = 0; at < record.size();) {
    const std::string_view left = record.substr(at);
    if (left.size() < kTarBlock) {
      if (left.find_first_not_of('\0') == std::string_view::npos) break;
      return Failure{fmt::format("the sample ends in the middle of a header, at its byte {}", at)};
    }
    Result<TarHeaders::Next> next = headers.read(left.substr(0, kTarBlock));
    if (!next.ok())
      return Failure{fmt::format("{}, at byte {} of the sample", next.failure().message, at)};
    at += kTarBlock;
    if (*next == TarHeaders::Next::header) continue;
    const bool extension = *next == TarHeaders::Next::extension;
    const TarMember& member = headers.member();
    const std::uint64_t bytes =
        extension ? headers.extension_bytes() : std::uint64_t{member.content_bytes};
    if (bytes > record.size() - at)
      return Failure{fmt::format("{} should have {} bytes, and the sample ends after {} of them",
                                 extension ? std::string("an extended header")
                                           : fmt::format("member \"{}\"", printable(member.name)),
                                 bytes, record.size() - at)};
    const std::string_view content = record.substr(at, static_cast<std::size_t>(bytes));
    at += static_cast<std::size_t>(std::min<std::uint64_t>(tar_padded(bytes), record.size() - at));
    if (extension) {
      if (Result<void> extended = headers.extend(content); !extended.ok())
        return std::move(extended.failure());
      continue;
    }
    const std::optional<TarName> name = tar_name_of(member);
    if (!name) continue;
    if (first) key.assign(name->key);
    first = false;
    if (Result<void> visited = visit_member(member, *name, key, content, visit); !visited.ok())
      return std::move(visited.failure());
  }
  if (first) return Failure{"the sample has no members"};
  return std::string_view(key);
}

/// A number as text, in the type of `value`.
template <typename T>
bool parse_number(std::string_view text, T& value) {
  constexpr std::string_view kSpaces = " \t\r\n\v\f";
  text.remove_prefix(std::min(text.find_first_not_of(kSpaces), text.size()));
  text = text.substr(0, text.find_last_not_of(kSpaces) + 1);
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

class TarDecoder final : public RecordDecoder {
 public:
  struct Field {
    std::string name;
    std::vector<std::string> extensions;  // in lower case, the best first
    Dtype dtype = Dtype::bytes;
    std::size_t column = 0;
  };

  TarDecoder(std::vector<Field> fields, bool key, std::string notes)
      : fields_(std::move(fields)), notes_(std::move(notes)) {
    std::vector<FieldSpec> specs;
    for (const Field& field : fields_) specs.push_back({field.name, field.dtype, {}});
    if (key) specs.push_back({std::string(kKeyField), Dtype::string, {}});
    spec_ = ElementSpec::dict(std::move(specs));
    for (Field& field : fields_) {
      field.column = *spec_.find(field.name);
      extensions_ += field.extensions.size();
    }
    if (key) key_column_ = spec_.find(kKeyField);
  }

  [[nodiscard]] const ElementSpec& spec() const override { return spec_; }
  [[nodiscard]] bool lends() const override { return true; }

  Result<void> decode(const RecordBytes& record, const BlockView& out, std::size_t row,
                      Scratch& scratch) const override {
    const Scratch::Frame frame(scratch);
    // The content of each extension that is wanted; nullptr if it is not there.
    auto* const contents = scratch.array<Content>(extensions_);
    std::fill_n(contents, extensions_, Content{});
    std::string key;
    const auto keep = [&](const TarName& name, std::string_view content) {
      return keep_member(name, content, contents);
    };
    if (Result<std::string_view> visited = visit_members(record.bytes, key, keep); !visited.ok())
      return std::move(visited.failure());
    const Content* own = contents;
    for (const Field& field : fields_) {
      const Content* const end = own + field.extensions.size();
      const Content* const found =
          std::find_if(own, end, [](const Content& content) { return content.data != nullptr; });
      if (found == end) return no_member(key, field.extensions);
      const std::string& extension = field.extensions[static_cast<std::size_t>(found - own)];
      if (Result<void> written = write(field, {found->data, found->bytes}, record, out, row);
          !written.ok()) {
        Failure failure = std::move(written.failure());
        failure.message =
            fmt::format("member \"{}.{}\" {}", printable(key), extension, failure.message);
        failure.where.field = field.name;
        return failure;
      }
      own = end;
    }
    if (key_column_) return write_key(key, out, row);
    return {};
  }

  [[nodiscard]] std::string notes() const override { return notes_; }

  void identify(Digest& digest) const override {
    for (const Field& field : fields_) {
      digest.add(field.name);
      digest.add(dtype_name(field.dtype));
      for (const std::string& extension : field.extensions) digest.add(extension);
    }
    digest.add(key_column_ ? 1 : 0);
  }

 private:
  struct Content {
    const char* data = nullptr;
    std::size_t bytes = 0;
  };

  Result<void> keep_member(const TarName& name, std::string_view content, Content* contents) const {
    for (const Field& field : fields_) {
      for (const std::string& extension : field.extensions) {
        Content& place = *contents++;
        if (!is_extension(name.extension, extension)) continue;
        if (place.data != nullptr)
          return Failure{.message = fmt::format("sample \"{}\" has two members with the extension "
                                                "{}",
                                                printable(name.key), extension),
                         .remedy = "give samples different names, or skip errors"};
        place = {content.data(), content.size()};
      }
    }
    return {};
  }

  static Result<void> write(const Field& field, std::string_view content, const RecordBytes& record,
                            const BlockView& out, std::size_t row) {
    const Column& column = out.columns[field.column];
    if (!is_variable(field.dtype)) return write_number(field.dtype, content, column, row);
    if (field.dtype == Dtype::string && !is_utf8(content))
      return Failure{.message = "is not UTF-8", .remedy = "read the field as bytes"};
    column.tensors[row] =
        Tensor::view(field.dtype, {}, std::as_bytes(std::span(content)), record.owner);
    return {};
  }

  static Result<void> write_number(Dtype dtype, std::string_view content, const Column& column,
                                   std::size_t row) {
    const bool good = with_type(dtype, [&]<typename T>(T value) {
      if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
        if (!parse_number(content, value)) return false;
        std::memcpy(column.data + row * column.row_bytes, &value, sizeof value);
        return true;
      }
      return false;
    });
    if (good) return {};
    return Failure{.message = fmt::format("is \"{}\", which is no {}",
                                          printable(content.substr(0, 40)), dtype_name(dtype)),
                   .remedy = "give the field another dtype, or skip errors"};
  }

  Result<void> write_key(std::string_view key, const BlockView& out, std::size_t row) const {
    if (!is_utf8(key))
      return Failure{
          .message = fmt::format("the name of sample \"{}\" is not UTF-8", printable(key)),
          .remedy = "read the samples without their keys, or skip errors"};
    out.columns[*key_column_].tensors[row] = Tensor::bytes(key, Dtype::string);
    return {};
  }

  std::vector<Field> fields_;
  std::string notes_;
  std::size_t extensions_ = 0;  // of all fields together
  std::optional<std::size_t> key_column_;
  ElementSpec spec_;
};

Dtype default_dtype(std::string_view extension) {
  constexpr std::array kIntegers = {"cls", "cls2", "index", "inx", "id", "count"};
  constexpr std::array kTexts = {"txt", "text", "transcript", "json"};
  const std::string_view last = extension.substr(extension.rfind('.') + 1);
  if (std::ranges::find(kIntegers, last) != kIntegers.end()) return Dtype::i64;
  if (std::ranges::find(kTexts, last) != kTexts.end()) return Dtype::string;
  return Dtype::bytes;
}

[[noreturn]] void refuse(const std::string& message, const std::string& remedy = {}) {
  throw ConfigError("from_tar: " + message, {}, remedy);
}

/// "jpg;jpeg" of field `name`.
std::vector<std::string> split_extensions(const std::string& name, std::string_view text) {
  std::vector<std::string> extensions;
  while (true) {
    const std::size_t end = std::min(text.find(';'), text.size());
    std::string extension = lower(text.substr(0, end));
    if (extension.starts_with('.')) extension.erase(0, 1);
    if (extension.empty() || extension.find('/') != std::string::npos)
      refuse(fmt::format("field \"{}\" has an extension that is empty or holds a '/'",
                         printable(name)),
             "extensions are written as in \"jpg;jpeg;png\"");
    if (std::ranges::find(extensions, extension) != extensions.end())
      refuse(fmt::format("field \"{}\" has the extension {} twice", printable(name), extension));
    extensions.push_back(std::move(extension));
    if (end == text.size()) return extensions;
    text.remove_prefix(end + 1);
  }
}

/// The extensions that all of the first samples have.
std::vector<std::pair<std::string, std::string>> inferred_fields(const FirstRecords& first) {
  std::optional<std::set<std::string>> common;
  std::size_t samples = 0;
  std::string reason;
  for (const std::string& record : first.records) {
    std::set<std::string> own;
    std::string key;
    const auto add = [&own](const TarName& name, std::string_view) -> Result<void> {
      own.insert(lower(name.extension));
      return {};
    };
    if (Result<std::string_view> visited = visit_members(record, key, add); !visited.ok()) {
      if (reason.empty()) reason = visited.failure().message;
      continue;
    }
    ++samples;
    if (!common) common = own;
    std::erase_if(*common, [&own](const std::string& name) { return !own.contains(name); });
  }
  const std::string remedy = "name the fields, as in {\"image\": \"jpg;png\", \"label\": \"cls\"}";
  if (!common)
    refuse(fmt::format("{} has no sample from which to infer the fields{}{}",
                       first.file.empty() ? "the file" : printable(first.file),
                       reason.empty() ? "" : ": ", reason),
           remedy);
  if (common->empty())
    refuse(fmt::format("the first {} samples of {} have no extension in common", samples,
                       first.file.empty() ? "the file" : printable(first.file)),
           remedy);
  std::vector<std::pair<std::string, std::string>> fields;
  for (const std::string& extension : *common) {
    if (!is_utf8(extension) || extension.find(';') != std::string::npos)
      refuse(
          fmt::format("the extension \"{}\" cannot be the name of a field", printable(extension)),
          remedy);
    fields.emplace_back(extension, extension);
  }
  return fields;
}

Dtype dtype_of(const TarDecoder::Field& field, const TarOptions& options) {
  for (const auto& [name, dtype] : options.dtypes) {
    if (name != field.name) continue;
    if (dtype == Dtype::boolean || dtype == Dtype::f16 || dtype == Dtype::bf16)
      refuse(fmt::format("field \"{}\" cannot be read as {}", printable(name), dtype_name(dtype)),
             "use bytes, string, an integer, f32 or f64, and cast after it");
    return dtype;
  }
  const Dtype dtype = default_dtype(field.extensions.front());
  for (const std::string& extension : field.extensions)
    if (default_dtype(extension) != dtype)
      refuse(fmt::format("field \"{}\" would be {} as {} and {} as {}", printable(field.name),
                         dtype_name(dtype), field.extensions.front(),
                         dtype_name(default_dtype(extension)), extension),
             "give the field a dtype");
  return dtype;
}

}  // namespace

std::shared_ptr<const RecordDecoder> make_tar_decoder(const TarOptions& options,
                                                      const FirstRecords& first) {
  const auto& wanted = options.fields.empty() ? inferred_fields(first) : options.fields;
  std::vector<TarDecoder::Field> fields;
  for (const auto& [name, text] : wanted) {
    TarDecoder::Field field{name, split_extensions(name, text)};
    field.dtype = dtype_of(field, options);
    fields.push_back(std::move(field));
  }
  for (const auto& [name, dtype] : options.dtypes)
    if (std::ranges::find(fields, name, &TarDecoder::Field::name) == fields.end())
      refuse(fmt::format("field \"{}\" has a dtype, and there is no such field; there are {}",
                         printable(name),
                         fmt::join(std::views::transform(fields, &TarDecoder::Field::name), ", ")));
  std::string notes;
  if (options.fields.empty())
    notes = fmt::format("inferred from the first {} samples: {}", first.records.size(),
                        fmt::join(std::views::transform(fields, &TarDecoder::Field::name), ", "));
  return std::make_shared<TarDecoder>(std::move(fields), options.key, std::move(notes));
}

RecordKind tar_kind(const TarOptions& options) {
  RecordKind kind;
  kind.word = "from_tar";
  kind.scanning = "tar";
  kind.scanner = make_tar_scanner;
  kind.infer_records = options.fields.empty() ? kInferRecords : 0;
  kind.decoder = [options](const FirstRecords& first) { return make_tar_decoder(options, first); };
  return kind;
}

}  // namespace penstock
