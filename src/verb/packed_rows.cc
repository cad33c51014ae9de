// tested in src/verb/pack_test.cc
#include "verb/packed_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "penstock/error.h"
#include "sample/with_type.h"

namespace penstock {
namespace {

constexpr std::int64_t kNoLabel = -100;  // what losses ignore by default

/// Calls `body(values)` with the whole numbers of a tensor; fails for other dtypes.
template <typename Body>
Result<void> with_numbers(const Tensor& tensor, Body body) {
  return with_type(tensor.dtype(), [&]<typename T>(T) -> Result<void> {
    if constexpr (std::is_integral_v<T>) {
      const auto* const values = reinterpret_cast<const T*>(tensor.raw().data());
      return body(std::span(values, tensor.raw().size() / sizeof(T)));
    } else {
      return Failure{fmt::format("tokens are whole numbers, not {}", dtype_name(tensor.dtype()))};
    }
  });
}

template <typename T>
bool is_token(T value) {
  const auto token = static_cast<std::int32_t>(value);
  return token >= 0 && static_cast<T>(token) == value;
}

template <typename T>
Failure no_token(std::size_t number, T value) {
  return {fmt::format("token {} is {}, which is not an i32 from 0 on", number, value)};
}

/// Copies tokens `first`, `first + 1`, ... of a document.
Result<void> copy_tokens(const Tensor& tokens, std::size_t first, std::span<std::int32_t> to) {
  return with_numbers(tokens, [&]<typename T>(std::span<const T> values) -> Result<void> {
    values = values.subspan(first, to.size());
    bool fits = true;
    for (std::size_t i = 0; i < to.size(); ++i) {
      to[i] = static_cast<std::int32_t>(values[i]);
      fits = fits && to[i] >= 0 && static_cast<T>(to[i]) == values[i];
    }
    if (fits) return {};
    const auto bad = std::ranges::find_if_not(values, is_token<T>);
    return no_token(first + static_cast<std::size_t>(bad - values.begin()), *bad);
  });
}

/// Sets labels to kNoLabel where the mask is 0. Labels are tokens `first`, `first + 1`, ...; a
/// separator is never hidden.
Result<void> hide(const Tensor& mask, std::size_t first, std::span<std::int64_t> labels) {
  return with_numbers(mask, [&]<typename T>(std::span<const T> values) -> Result<void> {
    for (std::size_t i = 0; i < labels.size() && first + i < values.size(); ++i)
      if (values[first + i] == 0) labels[i] = kNoLabel;
    return {};
  });
}

/// The tokens of a document, and its mask or null.
struct Document {
  const Tensor* tokens = nullptr;
  const Tensor* mask = nullptr;
};

Result<Document> read_document(const PackOptions& options, const Sample& sample) {
  Document found;
  try {
    found.tokens = &sample[options.field];
    if (!options.mask.empty()) found.mask = &sample[options.mask];
  } catch (const ConfigError& error) {  // there is no such field
    return Failure{error.message(), {}, error.remedy()};
  }
  if (is_variable(found.tokens->dtype()) || found.tokens->shape().size() != 1)
    return Failure{
        fmt::format("field \"{}\" is {}{}", options.field, dtype_name(found.tokens->dtype()),
                    shape_text(found.tokens->shape())),
        {},
        "the tokens are whole numbers in one dimension"};
  if (found.mask != nullptr && found.mask->shape() != found.tokens->shape())
    return Failure{fmt::format("field \"{}\" is {} and the tokens are {}", options.mask,
                               shape_text(found.mask->shape()), shape_text(found.tokens->shape())),
                   {},
                   "the mask has one number per token"};
  if (found.mask != nullptr && found.mask->dtype() > Dtype::i64)
    return Failure{
        fmt::format("the mask, field \"{}\", is {}", options.mask, dtype_name(found.mask->dtype())),
        {},
        "use whole numbers or booleans"};
  return found;
}

template <typename T>
std::span<T> row_of(const BlockView& out, std::size_t field, std::size_t row, std::size_t length) {
  const Column& column = out.columns[field];
  return {reinterpret_cast<T*>(column.data + row * column.row_bytes), length};
}

}  // namespace

ElementSpec packed_row_spec(const PackSettings& settings) {
  const Shape shape{static_cast<std::int64_t>(settings.rules.length)};
  std::vector<FieldSpec> fields{{"document", Dtype::i32, shape},
                                {"labels", Dtype::i64, shape},
                                {"positions", Dtype::i32, shape},
                                {"tokens", Dtype::i32, shape}};
  if (settings.options.with_cu_seqlens) fields.push_back({"cu_seqlens", Dtype::i32, {kUnknown}});
  return ElementSpec::dict(std::move(fields));
}

Result<std::uint32_t> document_length(const PackSettings& settings, const Sample& document) {
  auto found = read_document(settings.options, document);
  if (!found) return std::move(found.failure());
  auto done =
      with_numbers(*found->tokens, [&]<typename T>(std::span<const T> values) -> Result<void> {
        const auto bad = std::ranges::find_if_not(values, is_token<T>);
        if (bad == values.end()) return {};
        return no_token(static_cast<std::size_t>(bad - values.begin()), *bad);
      });
  if (!done) return std::move(done.failure());
  return static_cast<std::uint32_t>(found->tokens->shape().front());
}

// Fields are in alphabetical order, so cu_seqlens is the first.
PackedRowWriter::PackedRowWriter(const PackSettings& settings, const BlockView& out,
                                 std::size_t row)
    : settings_(settings),
      cu_seqlens_(settings.options.with_cu_seqlens ? &out.columns[0].tensors[row] : nullptr),
      document_(row_of<std::int32_t>(out, out.columns.size() - 4, row, settings.rules.length)),
      labels_(row_of<std::int64_t>(out, out.columns.size() - 3, row, settings.rules.length)),
      positions_(row_of<std::int32_t>(out, out.columns.size() - 2, row, settings.rules.length)),
      tokens_(row_of<std::int32_t>(out, out.columns.size() - 1, row, settings.rules.length)) {}

Result<void> PackedRowWriter::add(const DocumentPart& part, const Sample& document,
                                  std::uint32_t length) {
  auto found = read_document(settings_.options, document);
  if (!found) return std::move(found.failure());
  const Tensor& tokens = *found->tokens;
  if (tokens.shape().front() != static_cast<std::int64_t>(length))
    return Failure{fmt::format("a document is {}{}; it had {} tokens when lengths were counted",
                               dtype_name(tokens.dtype()), shape_text(tokens.shape()), length),
                   {},
                   "documents must have the same length each time"};
  const std::span<std::int32_t> own = tokens_.subspan(part.at, part.count);
  const std::size_t end = part.first + part.count;  // may include the separator
  if (auto done = copy_tokens(tokens, part.first,
                              own.first(std::min<std::size_t>(end, length) - part.first));
      !done)
    return done;
  if (end > length) own.back() = separator();
  if (auto done = write_labels(part, tokens, found->mask); !done) return done;

  const bool one = settings_.options.attention == PackAttention::row;
  const std::span<std::int32_t> positions = positions_.subspan(part.at, part.count);
  std::iota(positions.begin(), positions.end(), one ? static_cast<std::int32_t>(part.at) : 0);
  std::ranges::fill(document_.subspan(part.at, part.count), one ? 0 : parts_);
  ++parts_;
  filled_ += part.count;
  if (one && ends_.size() > 1) ends_.pop_back();
  ends_.push_back(static_cast<std::int32_t>(filled_));
  return {};
}

Result<void> PackedRowWriter::write_labels(const DocumentPart& part, const Tensor& tokens,
                                           const Tensor* mask) {
  const auto length = static_cast<std::size_t>(tokens.shape().front());
  const std::size_t end = part.first + part.count;
  const std::span<const std::int32_t> own = tokens_.subspan(part.at, part.count);
  const std::span<std::int64_t> labels = labels_.subspan(part.at, part.count);
  std::copy(own.begin() + 1, own.end(), labels.begin());
  labels.back() = kNoLabel;
  if (end < length) {  // the document continues in another row
    std::int32_t next = 0;
    if (auto done = copy_tokens(tokens, end, {&next, 1}); !done) return done;
    labels.back() = next;
  } else if (end == length && settings_.rules.separated) {
    labels.back() = separator();
  }
  if (mask != nullptr)
    if (auto done = hide(*mask, part.first + 1, labels); !done) return done;
  if (settings_.options.attention == PackAttention::document || part.at == 0) return {};
  // The token before is of another document, and is to predict this one.
  std::int64_t& before = labels_[part.at - 1];
  before = own.front();
  return mask == nullptr ? Result<void>() : hide(*mask, part.first, {&before, 1});
}

void PackedRowWriter::finish() {
  std::ranges::fill(document_.subspan(filled_), -1);
  std::ranges::fill(labels_.subspan(filled_), kNoLabel);
  std::ranges::fill(positions_.subspan(filled_), 0);
  std::ranges::fill(tokens_.subspan(filled_), static_cast<std::int32_t>(settings_.options.pad));
  if (cu_seqlens_ != nullptr) *cu_seqlens_ = Tensor::of(ends_);
}

std::int32_t PackedRowWriter::separator() const {
  return static_cast<std::int32_t>(*settings_.options.separator);
}

}  // namespace penstock
