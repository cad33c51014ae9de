#include "record/example.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/printable.h"
#include "base/utf8.h"
#include "penstock/error.h"
#include "record/example_wire.h"
#include "record/name_table.h"
#include "record/tfrecord.h"
#include "sample/rows.h"

namespace penstock {
namespace {

/// A feature and what reading it needs.
struct FeatureSlot {
  ExampleFeature feature;
  std::optional<std::size_t> open = {};  // which size is unknown
  std::size_t values = 1;                // of a row or step; those of one unit of the open size
  std::size_t bytes = 0;                 // of these values
  std::vector<std::byte> missing = {};   // a whole row
};

[[noreturn]] void refuse(const ExampleFeature& feature, const std::string& why,
                         const char* remedy) {
  throw ConfigError(fmt::format("from_tfrecord: feature \"{}\" {}", printable(feature.name), why),
                    {}, remedy);
}

std::string shown(const ExampleFeature& feature) {
  return fmt::format("{}{}", dtype_name(feature.dtype), shape_text(feature.shape));
}

void check_feature(const ExampleFeature& feature) {
  if (feature.name.empty() || !is_utf8(feature.name))
    refuse(feature, "has no name in UTF-8", "names of features are not empty");
  const auto wrong_size = [](std::int64_t size) { return size < 0 && size != kUnknown; };
  if (std::ranges::any_of(feature.shape, wrong_size))
    refuse(feature, fmt::format("has the shape {}", shape_text(feature.shape)),
           "sizes are not negative");
  const auto unknown = std::ranges::count(feature.shape, kUnknown);
  if (is_variable(feature.dtype)) {
    if (!feature.shape.empty() || feature.sequence || feature.raw)
      refuse(feature, fmt::format("is {}{}", shown(feature), feature.sequence ? " by steps" : ""),
             "lists of several texts cannot be read: leave the feature out, or read raw records");
  } else if (feature.sequence && unknown > 0) {
    refuse(feature, fmt::format("is {} by steps", shown(feature)),
           "declare the shape of one step, which must be known");
  } else if (unknown > 1) {
    refuse(feature, fmt::format("has the shape {}", shape_text(feature.shape)),
           "at most one size may be unknown");
  }
  if (!feature.missing) return;
  if (feature.sequence || unknown > 0)
    refuse(feature, "has a value for missing ones", "absent is empty where a size is unknown");
  const Tensor& missing = *feature.missing;
  if (missing.empty() || missing.dtype() != feature.dtype ||
      (missing.shape() != feature.shape && !missing.shape().empty()))
    refuse(feature,
           fmt::format("is {}, its value for missing ones is {}{}", shown(feature),
                       dtype_name(missing.dtype()), shape_text(missing.shape())),
           "give a tensor of the same dtype and shape, or a scalar of the same dtype");
}

FeatureSlot make_slot(ExampleFeature feature) {
  check_feature(feature);
  FeatureSlot slot{std::move(feature)};
  Shape known = slot.feature.shape;
  const auto open = std::ranges::find(known, kUnknown);
  if (open != known.end()) {
    slot.open = static_cast<std::size_t>(open - known.begin());
    *open = 1;
  }
  slot.values = shape_values(known);
  if (__builtin_mul_overflow(slot.values, dtype_size(slot.feature.dtype), &slot.bytes))
    refuse(slot.feature, fmt::format("is {}", shown(slot.feature)), "that is too large");
  if (slot.feature.missing) {
    const auto raw = slot.feature.missing->raw();
    const bool spread = slot.feature.missing->shape() != slot.feature.shape;
    for (std::size_t i = 0; i < (spread ? slot.values : 1); ++i)
      slot.missing.insert(slot.missing.end(), raw.begin(), raw.end());
  }
  return slot;
}

/// Memory that a tensor will own.
struct NewValues {
  explicit NewValues(std::size_t size)
      : bytes(size),
        data(std::make_shared_for_overwrite<std::byte[]>(std::max<std::size_t>(1, size))) {}
  [[nodiscard]] Tensor tensor(Dtype dtype, Shape shape) {
    const std::span<const std::byte> span(data.get(), bytes);
    return Tensor::view(dtype, std::move(shape), span, std::move(data));
  }
  std::size_t bytes;
  std::shared_ptr<std::byte[]> data;
};

// Failures. They are rare, so that what they need is looked up again.

Failure of_feature(const FeatureSlot& slot, const std::string& what, std::string remedy = {}) {
  return Failure{fmt::format("feature \"{}\" {}", printable(slot.feature.name), what),
                 {.field = slot.feature.name},
                 std::move(remedy)};
}

Failure malformed(const FeatureSlot& slot) {
  return of_feature(slot, "is malformed", "write the record again: it is damaged");
}

Failure no_example() {
  return Failure{
      "the record is no tf.train.Example", {}, "read raw records, and decode them in a map"};
}

std::string expected_text(const FeatureSlot& slot) {
  return fmt::format("{}{}", shown(slot.feature), slot.feature.sequence ? " in each step" : "");
}

std::string names_in(std::string_view payload) {
  constexpr std::size_t kNamesMax = 32;
  std::vector<std::string> names;
  static_cast<void>(visit_features(payload, [&](bool, std::string_view name, std::string_view) {
    if (names.size() <= kNamesMax) names.push_back(fmt::format("\"{}\"", printable(name)));
  }));
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  if (names.empty()) return "no features";
  const bool more = names.size() > kNamesMax;
  if (more) names.resize(kNamesMax);
  return fmt::format("{}{}", fmt::join(names, ", "), more ? ", ..." : "");
}

Failure wrong_kind(const FeatureSlot& slot, const ValueList& list) {
  const auto count = count_values(list);
  if (!count) return malformed(slot);
  const auto texts = list.kind == ListKind::bytes ? read_texts(list) : std::nullopt;
  std::string remedy =
      slot.feature.raw
          ? "without raw it is read as a list of numbers"
          : fmt::format("declare it as {}", list.kind == ListKind::bytes    ? "bytes or a string"
                                            : list.kind == ListKind::floats ? "floats"
                                                                            : "integers");
  const std::size_t unit = dtype_size(slot.feature.dtype);
  if (texts && texts->count == 1 && unit > 0 && texts->first.size() % unit == 0)
    remedy += ", or with raw=true if these bytes are the numbers";
  return of_feature(slot,
                    fmt::format("has {}, expected {}{}", counted(*count, list.kind),
                                expected_text(slot), slot.feature.raw ? " as bytes" : ""),
                    std::move(remedy));
}

Failure wrong_count(const FeatureSlot& slot, const ValueList& list) {
  const auto count = count_values(list);
  if (!count) return malformed(slot);
  const char* const remedy =
      is_variable(slot.feature.dtype) ? "leave the feature out, or read raw records"
      : slot.feature.sequence         ? "every step must have as many values as its shape"
                                      : "with an unknown size in the shape any number is read";
  return of_feature(
      slot, fmt::format("has {}, expected {}", counted(*count, list.kind), expected_text(slot)),
      remedy);
}

Failure wrong_bytes(const FeatureSlot& slot, std::size_t bytes) {
  return of_feature(slot,
                    fmt::format("has {} bytes, expected {}, which has {}{}", bytes,
                                expected_text(slot), slot.open ? "a multiple of " : "", slot.bytes),
                    "declare the dtype and shape that were written");
}

Failure not_boolean(const FeatureSlot& slot) {
  return of_feature(slot, "has bytes other than 0 and 1, expected bool", "declare it as u8");
}

Failure failure_of(const FeatureSlot& slot, const ValueList& list, const CopyOutcome& outcome) {
  if (outcome.copied == Copied::malformed) return malformed(slot);
  if (outcome.copied == Copied::other_count) return wrong_count(slot, list);
  return of_feature(slot,
                    fmt::format("has the value {}, which does not fit {}", outcome.misfit,
                                dtype_name(slot.feature.dtype)),
                    "declare a larger dtype, such as i64");
}

// Values.

/// A list of one text, or of none.
Result<Texts> one_text(const FeatureSlot& slot, const ValueList& list) {
  if (list.kind == ListKind::none) return Texts{};
  if (list.kind != ListKind::bytes) return wrong_kind(slot, list);
  const auto texts = read_texts(list);
  if (!texts) return malformed(slot);
  if (texts->count > 1) return wrong_count(slot, list);
  return *texts;
}

Result<void> copy_raw(const FeatureSlot& slot, std::string_view bytes, std::byte* to) {
  const auto wrong = [](char byte) { return byte != 0 && byte != 1; };
  if (slot.feature.dtype == Dtype::boolean && std::ranges::any_of(bytes, wrong))
    return not_boolean(slot);
  if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
  return {};
}

/// Writes the values of one row or step. `found` is false if there are none.
Result<void> put_values(const FeatureSlot& slot, std::string_view feature, std::byte* to,
                        bool& found) {
  found = true;
  const auto list = read_feature(feature);
  if (!list) return malformed(slot);
  if (slot.feature.raw) {
    auto text = one_text(slot, *list);
    if (!text) return std::move(text.failure());
    found = text->count > 0;
    if (!found) return {};
    if (text->first.size() != slot.bytes) return wrong_bytes(slot, text->first.size());
    return copy_raw(slot, text->first, to);
  }
  found = list->kind != ListKind::none;
  if (!found) return {};
  if (!holds(list->kind, slot.feature.dtype)) return wrong_kind(slot, *list);
  const CopyOutcome outcome = copy_values(*list, slot.feature.dtype, slot.values, to);
  if (outcome.copied == Copied::all) [[likely]]
    return {};
  if (outcome.copied == Copied::other_count && count_values(*list) == 0U) {
    found = false;
    return {};
  }
  return failure_of(slot, *list, outcome);
}

/// A field with an open size.
Result<void> put_open(const FeatureSlot& slot, std::string_view feature, Tensor& to) {
  const auto list = read_feature(feature);
  if (!list) return malformed(slot);
  const auto finish = [&](std::size_t units, NewValues values) {
    Shape shape = slot.feature.shape;
    shape[*slot.open] = static_cast<std::int64_t>(units);
    to = values.tensor(slot.feature.dtype, std::move(shape));
  };
  if (slot.feature.raw) {
    auto text = one_text(slot, *list);
    if (!text) return std::move(text.failure());
    const std::string_view bytes = text->first;
    if (slot.bytes == 0 ? !bytes.empty() : bytes.size() % slot.bytes != 0)
      return wrong_bytes(slot, bytes.size());
    NewValues values(bytes.size());
    if (auto done = copy_raw(slot, bytes, values.data.get()); !done) return done;
    finish(slot.bytes == 0 ? 0 : bytes.size() / slot.bytes, std::move(values));
    return {};
  }
  const auto count = count_values(*list);
  if (!count) return malformed(slot);
  if (list->kind != ListKind::none && !holds(list->kind, slot.feature.dtype))
    return wrong_kind(slot, *list);
  if (slot.values == 0 ? *count != 0 : *count % slot.values != 0) return wrong_count(slot, *list);
  NewValues values(*count * dtype_size(slot.feature.dtype));
  if (*count > 0) {
    const auto outcome = copy_values(*list, slot.feature.dtype, *count, values.data.get());
    if (outcome.copied != Copied::all) return failure_of(slot, *list, outcome);
  }
  finish(slot.values == 0 ? 0 : *count / slot.values, std::move(values));
  return {};
}

/// The steps of a feature list.
Result<void> put_steps(const FeatureSlot& slot, std::string_view list, Tensor& to) {
  using Type = WireField::Type;
  WireField field;
  std::size_t steps = 0;
  WireReader counter(list);
  while (counter.next(field)) {
    if (field.number != 1) continue;
    if (field.type != Type::bytes) return malformed(slot);
    ++steps;
  }
  if (!counter.ok()) return malformed(slot);
  // Each value takes a byte or more in the record, which bounds the memory that it may request.
  std::size_t bytes_min = 0;
  const std::size_t step_bytes_min = slot.feature.raw ? slot.bytes : slot.values;
  if (__builtin_mul_overflow(steps, step_bytes_min, &bytes_min) || bytes_min > list.size())
    return of_feature(slot,
                      fmt::format("has {} steps in {} bytes, expected {}", steps, list.size(),
                                  expected_text(slot)),
                      "every step must have as many values as its shape");
  NewValues values(steps * slot.bytes);
  std::byte* at = values.data.get();
  WireReader reader(list);
  while (reader.next(field)) {
    if (field.number != 1) continue;
    bool found = false;
    if (auto done = put_values(slot, field.bytes, at, found); !done) return done;
    if (!found && slot.values > 0)
      return of_feature(slot,
                        fmt::format("has a step without values, expected {}", expected_text(slot)));
    at += slot.bytes;
  }
  Shape shape = slot.feature.shape;
  shape.insert(shape.begin(), static_cast<std::int64_t>(steps));
  to = values.tensor(slot.feature.dtype, std::move(shape));
  return {};
}

Result<void> put_text(const FeatureSlot& slot, std::string_view feature, const RecordBytes& record,
                      Tensor& to, bool& found) {
  const auto list = read_feature(feature);
  if (!list) return malformed(slot);
  auto text = one_text(slot, *list);
  if (!text) return std::move(text.failure());
  found = text->count > 0;
  if (!found) return {};
  const std::string_view bytes = text->first;
  if (slot.feature.dtype == Dtype::string && !is_utf8(bytes))
    return of_feature(slot, "is not UTF-8, expected string", "declare it as bytes");
  to = record.owner
           ? Tensor::view(slot.feature.dtype, {}, std::as_bytes(std::span(bytes)), record.owner)
           : Tensor::bytes(bytes, slot.feature.dtype);
  return {};
}

class ExampleDecoder final : public RecordDecoder {
 public:
  ExampleDecoder(std::vector<ExampleFeature> features, std::string notes)
      : notes_(std::move(notes)) {
    if (features.empty())
      throw ConfigError("from_tfrecord: no features", {}, "name the features to read");
    std::ranges::sort(features, {}, &ExampleFeature::name);
    std::vector<FieldSpec> fields;
    for (ExampleFeature& feature : features) {
      slots_.push_back(make_slot(std::move(feature)));
      fields.push_back(field_of(slots_.back().feature));
    }
    spec_ = ElementSpec::dict(std::move(fields));
    context_ = NameTable(slots_.size());
    lists_ = NameTable(slots_.size());
    for (std::uint32_t i = 0; i < slots_.size(); ++i)
      (slots_[i].feature.sequence ? lists_ : context_).add(slots_[i].feature.name, i);
  }

  [[nodiscard]] const ElementSpec& spec() const override { return spec_; }
  [[nodiscard]] bool lends() const override {
    return std::ranges::any_of(
        slots_, [](const FeatureSlot& slot) { return is_variable(slot.feature.dtype); });
  }
  [[nodiscard]] std::string notes() const override { return notes_; }

  Result<void> decode(const RecordBytes& record, const BlockView& out, std::size_t row,
                      Scratch& scratch) const override {
    const auto payload = tfrecord_payload(record.bytes);
    if (!payload) return payload.failure();
    const Scratch::Frame frame(scratch);
    // The Feature or FeatureList of each slot. Absent and empty ones are the same.
    auto* const values = scratch.array<std::string_view>(slots_.size());
    std::uninitialized_fill_n(values, slots_.size(), std::string_view{});
    const auto visit = [&](bool is_list, std::string_view name, std::string_view value) {
      const NameTable& table = is_list ? lists_ : context_;
      const std::uint32_t slot = table.find(name);
      if (slot != NameTable::kNone) values[slot] = value;
    };
    if (!visit_features(*payload, visit)) return no_example();
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      auto done = put(slots_[i], values[i], record, out.columns[i], row, *payload);
      if (!done) return done;
    }
    return {};
  }

  void identify(Digest& digest) const override {
    digest.add("example");
    for (const FeatureSlot& slot : slots_) {
      digest.add(slot.feature.name);
      digest.add(shown(slot.feature));
      digest.add((slot.feature.sequence ? 1U : 0U) + (slot.feature.raw ? 2U : 0U) +
                 (slot.feature.missing ? 4U : 0U));
      digest.add({reinterpret_cast<const char*>(slot.missing.data()), slot.missing.size()});
    }
  }

 private:
  static Result<void> put(const FeatureSlot& slot, std::string_view value,
                          const RecordBytes& record, const Column& column, std::size_t row,
                          std::string_view payload) {
    if (slot.feature.sequence) return put_steps(slot, value, column.tensors[row]);
    if (slot.open) return put_open(slot, value, column.tensors[row]);
    bool found = false;
    const bool text = is_variable(slot.feature.dtype);
    std::byte* const to = text ? nullptr : column.data + row * column.row_bytes;
    auto done = text ? put_text(slot, value, record, column.tensors[row], found)
                     : put_values(slot, value, to, found);
    if (!done || found) [[likely]]
      return done;
    if (text && slot.feature.missing) {
      column.tensors[row] = *slot.feature.missing;
    } else if (slot.feature.missing) {
      if (!slot.missing.empty()) std::memcpy(to, slot.missing.data(), slot.missing.size());
    } else if (text || slot.values > 0) {
      return of_feature(slot,
                        fmt::format("is absent or empty, expected {}; the record has: {}",
                                    shown(slot.feature), names_in(payload)),
                        "check its name, or declare its value where it is missing");
    }
    return {};
  }

  const std::string notes_;
  std::vector<FeatureSlot> slots_;  // in the order of the fields
  ElementSpec spec_;
  NameTable context_;
  NameTable lists_;
};

class PayloadDecoder final : public RecordDecoder {
 public:
  [[nodiscard]] const ElementSpec& spec() const override { return spec_; }
  [[nodiscard]] bool lends() const override { return true; }
  Result<void> decode(const RecordBytes& record, const BlockView& out, std::size_t row,
                      Scratch&) const override {
    const auto payload = tfrecord_payload(record.bytes);
    if (!payload) return payload.failure();
    out.columns[0].tensors[row] =
        record.owner
            ? Tensor::view(Dtype::bytes, {}, std::as_bytes(std::span(*payload)), record.owner)
            : Tensor::bytes(*payload);
    return {};
  }
  void identify(Digest& digest) const override { digest.add("payload"); }

 private:
  const ElementSpec spec_ = ElementSpec::single(Dtype::bytes);
};

}  // namespace

FieldSpec field_of(const ExampleFeature& feature) {
  FieldSpec field{feature.name, feature.dtype, feature.shape};
  if (feature.sequence) field.shape.insert(field.shape.begin(), kUnknown);
  return field;
}

std::shared_ptr<const RecordDecoder> make_example_decoder(std::vector<ExampleFeature> features,
                                                          std::string notes) {
  return std::make_shared<const ExampleDecoder>(std::move(features), std::move(notes));
}

std::shared_ptr<const RecordDecoder> make_payload_decoder() {
  return std::make_shared<const PayloadDecoder>();
}

}  // namespace penstock
