#include "source/ragged_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/json.h"
#include "base/printable.h"
#include "penstock/error.h"
#include "sample/rows.h"
#include "source/glob.h"
#include "source/identify.h"
#include "source/mapped_file.h"

namespace penstock {
namespace {

/// Some pieces of the data and its size: enough to recognize other data without reading all of it.
void identify_values_of(const Tensor& values, Digest& digest) {
  digest.add(fmt::format("{}{}", dtype_name(values.dtype()), shape_text(values.shape())));
  identify_bytes(values.text(), digest);
}

Shape inner_shape(const Tensor& values) {
  return {values.shape().begin() + 1, values.shape().end()};
}
std::size_t inner_bytes(const Tensor& values) {
  return shape_values(inner_shape(values)) * dtype_size(values.dtype());
}

void check_values(const char* word, const Tensor& values) {
  if (values.empty() || values.shape().empty() || is_variable(values.dtype()))
    throw ConfigError(
        fmt::format("{}: the values must be an array of one dimension or more", word));
}

/// Row i begins at unit begin[i] and ends at begin[i + 1] or, if there are lengths, after
/// lengths[i].
class RaggedRows final : public Source {
 public:
  RaggedRows(std::string word, Tensor values, Tensor begin, Tensor lengths, std::string name,
             Json arguments)
      : word_(std::move(word)),
        values_(std::move(values)),
        begin_(std::move(begin)),
        lengths_(std::move(lengths)),
        name_(std::move(name)),
        arguments_(std::move(arguments)),
        unit_(inner_bytes(values_)),
        size_(static_cast<std::uint64_t>(begin_.shape().front()) - (lengths_.empty() ? 1 : 0)) {
    Shape shape = inner_shape(values_);
    shape.insert(shape.begin(), kUnknown);
    spec_ = ElementSpec::single(values_.dtype(), std::move(shape));
    owner_ = std::make_shared<const Tensor>(values_);
  }
  [[nodiscard]] std::string word() const override { return word_; }
  [[nodiscard]] std::uint64_t size() const override { return size_; }
  [[nodiscard]] const ElementSpec& spec() const override { return spec_; }
  [[nodiscard]] std::string describe() const override {
    return fmt::format("{}({} x {})", word_, size(), spec_.text());
  }
  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] Json arguments() const override { return arguments_; }
  void identify(Digest& digest) const override {
    identify_values_of(values_, digest);
    identify_values_of(begin_, digest);
  }

  Result<void> decode(std::span<const std::uint64_t> numbers, std::span<Bytes>,
                      const BlockView& out, const Context&) const override {
    const auto begin = begin_.values<std::int64_t>();
    Shape shape = spec_.fields[0].shape;
    for (std::size_t row = 0; row < numbers.size(); ++row) {
      const std::uint64_t number = numbers[row];
      shape.front() = lengths_.empty() ? begin[number + 1] - begin[number]
                                       : lengths_.values<std::int64_t>()[number];
      const auto bytes = values_.raw().subspan(static_cast<std::size_t>(begin[number]) * unit_,
                                               static_cast<std::size_t>(shape.front()) * unit_);
      out.columns[0].tensors[row] = Tensor::view(values_.dtype(), shape, bytes, owner_);
    }
    return {};
  }

 private:
  const std::string word_;
  const Tensor values_;
  const Tensor begin_;
  const Tensor lengths_;  // or empty
  const std::string name_;
  const Json arguments_;
  const std::size_t unit_;
  const std::uint64_t size_;
  ElementSpec spec_;
  std::shared_ptr<const void> owner_;
};

/// Windows of one length, of one array or of several files.
class Windows final : public Source {
 public:
  struct Part {
    Tensor values;
    std::string file;
    std::uint64_t end = 0;  // windows of this part and those before
  };
  Windows(std::string word, std::vector<Part> parts, std::int64_t length, std::int64_t stride,
          std::string name, Json arguments)
      : word_(std::move(word)),
        parts_(std::move(parts)),
        length_(length),
        stride_(stride == 0 ? length : stride),
        name_(std::move(name)),
        arguments_(std::move(arguments)) {
    if (length < 1)
      throw ConfigError(fmt::format("{}: length must be positive, got {}", word_, length));
    if (stride < 0)
      throw ConfigError(fmt::format("{}: stride must not be negative, got {}", word_, stride));
    std::uint64_t windows = 0;
    for (Part& part : parts_) {
      const std::int64_t values = part.values.shape().front();
      if (values >= length_)
        windows += static_cast<std::uint64_t>((values - length_) / stride_ + 1);
      part.end = windows;
    }
    const Tensor& values = parts_.front().values;
    unit_ = inner_bytes(values);
    Shape shape = inner_shape(values);
    shape.insert(shape.begin(), length_);
    spec_ = ElementSpec::single(values.dtype(), std::move(shape));
  }
  [[nodiscard]] std::string word() const override { return word_; }
  [[nodiscard]] std::uint64_t size() const override { return parts_.back().end; }
  [[nodiscard]] const ElementSpec& spec() const override { return spec_; }
  [[nodiscard]] std::string describe() const override {
    return fmt::format("{}({} x {}, stride {})", word_, size(), spec_.text(), stride_);
  }
  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] Json arguments() const override { return arguments_; }
  void identify(Digest& digest) const override {
    digest.add(fmt::format("{} {}", length_, stride_));
    for (const Part& part : parts_) identify_values_of(part.values, digest);
  }
  [[nodiscard]] std::string file_of(std::uint64_t number) const override {
    return part_of(number).file;
  }

  Result<void> decode(std::span<const std::uint64_t> numbers, std::span<Bytes>,
                      const BlockView& out, const Context&) const override {
    const Column& column = out.columns[0];
    for (std::size_t row = 0; row < numbers.size(); ++row) {
      const Part& part = part_of(numbers[row]);
      const std::uint64_t before = &part == parts_.data() ? 0 : (&part - 1)->end;
      const auto first = static_cast<std::size_t>(stride_) * (numbers[row] - before) * unit_;
      if (column.row_bytes > 0)
        std::memcpy(column.data + row * column.row_bytes, part.values.raw().data() + first,
                    column.row_bytes);
    }
    return {};
  }

 private:
  [[nodiscard]] const Part& part_of(std::uint64_t number) const {
    if (number < parts_.front().end) return parts_.front();
    return *std::ranges::upper_bound(parts_, number, {}, &Part::end);
  }

  const std::string word_;
  std::vector<Part> parts_;
  const std::int64_t length_;
  const std::int64_t stride_;
  const std::string name_;
  const Json arguments_;
  std::size_t unit_ = 0;
  ElementSpec spec_;
};

/// Reads numbers from a mapped file, one after the other.
class IndexReader {
 public:
  IndexReader(Tensor file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}
  template <typename T>
  T take() {
    T value;
    std::memcpy(&value, need(sizeof value), sizeof value);
    return value;
  }
  template <typename T>
  std::vector<std::int64_t> take_many(std::uint64_t count) {
    if (count > file_.raw().size() / sizeof(T)) refuse("is cut");
    const std::byte* const data = need(count * sizeof(T));
    std::vector<std::int64_t> values(count);
    for (std::uint64_t i = 0; i < count; ++i) {
      T value;
      std::memcpy(&value, data + i * sizeof value, sizeof value);
      values[i] = static_cast<std::int64_t>(value);
    }
    return values;
  }
  [[noreturn]] void refuse(const std::string& why) const {
    throw ConfigError(fmt::format("from_megatron: {} {}", printable(path_), why), {},
                      "write it again with the library that made it");
  }

 private:
  const std::byte* need(std::size_t bytes) {
    if (file_.raw().size() - at_ < bytes) refuse("is cut");
    at_ += bytes;
    return file_.raw().data() + at_ - bytes;
  }
  Tensor file_;
  std::string path_;
  std::size_t at_ = 0;
};

Dtype megatron_dtype(std::uint8_t code, const IndexReader& reader) {
  switch (code) {
    case 1:
      return Dtype::u8;
    case 2:
      return Dtype::i8;
    case 3:
      return Dtype::i16;
    case 4:
      return Dtype::i32;
    case 5:
      return Dtype::i64;
    case 8:
      return Dtype::u16;
    default:
      reader.refuse(fmt::format("has dtype code {}, which is not one of whole numbers", code));
  }
}

}  // namespace

std::shared_ptr<const Source> make_ragged(Tensor values, Tensor offsets, std::string name) {
  check_values("from_ragged", values);
  if (offsets.empty() || offsets.dtype() != Dtype::i64 || offsets.shape().size() != 1 ||
      offsets.shape().front() < 1)
    throw ConfigError("from_ragged: offsets must be i64 in one dimension, one more than rows");
  const auto all = offsets.values<std::int64_t>();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool ascends = i == 0 ? all[i] >= 0 : all[i] >= all[i - 1];
    if (!ascends || all[i] > values.shape().front())
      throw ConfigError(
          fmt::format("from_ragged: offset {} is {}{}; there are {} values", i, all[i],
                      i == 0 ? "" : fmt::format(", after {}", all[i - 1]), values.shape().front()),
          {}, "offsets ascend from 0 on to at most the number of values");
  }
  return std::make_shared<RaggedRows>("from_ragged", std::move(values), std::move(offsets),
                                      Tensor(), std::move(name), Json());
}

std::shared_ptr<const Source> make_windows(Tensor values, std::int64_t length, std::int64_t stride,
                                           std::string name) {
  check_values("from_windows", values);
  std::vector<Windows::Part> parts;
  parts.push_back({std::move(values), {}});
  return std::make_shared<Windows>("from_windows", std::move(parts), length, stride,
                                   std::move(name), Json());
}

std::shared_ptr<const Source> make_tokens(Io& io, const std::string& pattern, Dtype dtype,
                                          std::int64_t length, std::int64_t stride) {
  if (is_variable(dtype)) throw ConfigError("tokens: the dtype must be one of numbers");
  const FileTable files = list_matching(io, pattern, false);
  if (files.size() == 0)
    throw ConfigError(fmt::format("tokens: no file matches \"{}\"", printable(pattern)));
  std::vector<Windows::Part> parts;
  for (std::uint64_t i = 0; i < files.size(); ++i)
    parts.push_back({map_file(files.path(i), dtype), files.path(i)});
  return std::make_shared<Windows>("tokens", std::move(parts), length, stride, std::string(),
                                   Json{{"pattern", pattern},
                                        {"dtype", dtype_name(dtype)},
                                        {"length", length},
                                        {"stride", stride}});
}

std::shared_ptr<const Source> make_megatron(const std::string& prefix) {
  return read_megatron(prefix, map_file(prefix + ".idx", Dtype::u8),
                       map_file(prefix + ".bin", Dtype::u8));
}

std::shared_ptr<const Source> read_megatron(const std::string& prefix, Tensor index,
                                            const Tensor& tokens) {
  IndexReader reader(std::move(index), prefix + ".idx");
  constexpr std::string_view kMagic("MMIDIDX\0\0", 9);
  for (const char letter : kMagic)
    if (reader.take<char>() != letter) reader.refuse("is not an index of Megatron");
  if (const auto version = reader.take<std::uint64_t>(); version != 1)
    reader.refuse(fmt::format("has version {}, only 1 is known", version));
  const Dtype dtype = megatron_dtype(reader.take<std::uint8_t>(), reader);
  const auto count = reader.take<std::uint64_t>();
  const auto documents = reader.take<std::uint64_t>();
  std::vector<std::int64_t> lengths = reader.take_many<std::int32_t>(count);
  std::vector<std::int64_t> begin = reader.take_many<std::int64_t>(count);
  (void)reader.take_many<std::int64_t>(documents);  // not needed, but a cut file lacks them
  const auto width = static_cast<std::int64_t>(dtype_size(dtype));
  const std::int64_t all = tokens.shape().front() / width;
  const std::size_t used = static_cast<std::size_t>(all * width);
  Tensor values =
      Tensor::view(dtype, {all}, tokens.raw().first(used), std::make_shared<const Tensor>(tokens));
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::int64_t first = begin[i] / width;
    if (begin[i] < 0 || begin[i] % width != 0 || lengths[i] < 0 ||
        first > values.shape().front() - lengths[i])
      reader.refuse(
          fmt::format("does not fit {}.bin: document {} has {} tokens from byte {} on, and "
                      "there are {} tokens",
                      printable(prefix), i, lengths[i], begin[i], values.shape().front()));
    begin[i] = first;
  }
  return std::make_shared<RaggedRows>("from_megatron", std::move(values), Tensor::of(begin),
                                      Tensor::of(lengths), std::string(), Json{{"prefix", prefix}});
}

}  // namespace penstock
