#include "record/example_infer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "base/utf8.h"
#include "penstock/error.h"
#include "record/example.h"
#include "record/example_wire.h"
#include "record/tfrecord.h"

namespace penstock {
namespace {

constexpr const char* kRemedy =
    "name the features to read, or read raw records and decode them in a map";
constexpr std::size_t kFeaturesMax = 65'536;

/// True if a decoder can read the values, which are `count`.
bool readable(const ValueList& list, std::size_t count) {
  if (list.kind != ListKind::ints) return true;  // counting these checks them
  std::vector<std::int64_t> values(count);
  return copy_values(list, Dtype::i64, count, reinterpret_cast<std::byte*>(values.data())).copied ==
         Copied::all;
}

/// What is known of one feature. For a feature list the counts are those of its steps.
class SeenFeature {
 public:
  /// Adds the Feature of one record, or one step.
  void add(std::string_view feature) {
    const auto list = read_feature(feature);
    const auto count = list ? count_values(*list) : std::nullopt;
    if (!count || !readable(*list, *count)) {
      malformed_ = true;
      return;
    }
    if (list->kind == ListKind::none) return;
    if (kind_ == ListKind::none) {
      kind_ = list->kind;
      count_ = *count;
    }
    if (list->kind != kind_) other_kind_ = list->kind;
    same_ = same_ && *count == count_;
    most_ = std::max(most_, *count);
    ++times_;
  }
  /// Adds the FeatureList of one record.
  void add_steps(std::string_view list) {
    WireReader reader(list);
    WireField field;
    while (reader.next(field)) {
      if (field.number != 1) continue;
      if (field.type == WireField::Type::bytes) ++steps_;
      add(field.type == WireField::Type::bytes ? field.bytes : "\x80");
    }
    malformed_ = malformed_ || !reader.ok();
  }

  /// Why it cannot be read, if so. `expected` is how often it must be there to be there always.
  [[nodiscard]] std::optional<std::string> obstacle(bool is_list, std::size_t expected) const {
    if (malformed_) return "malformed in one record";
    if (kind_ == ListKind::none) return "always empty";
    if (other_kind_ != ListKind::none)
      return fmt::format("{} in one record, {} in another", plural(kind_), plural(other_kind_));
    if (is_list && kind_ == ListKind::bytes) return "texts by steps";
    if (is_list && (!same_ || times_ < steps_)) return "steps of different sizes";
    if (kind_ != ListKind::bytes) return std::nullopt;
    if (most_ > 1) return fmt::format("{} texts in one record", most_);
    if (times_ < expected || !same_ || most_ == 0) return "absent in some records";
    return std::nullopt;
  }
  /// If there is no obstacle.
  [[nodiscard]] ExampleFeature feature(std::string name, bool is_list, std::size_t expected) const {
    const Dtype dtype = kind_ == ListKind::bytes    ? Dtype::bytes
                        : kind_ == ListKind::floats ? Dtype::f32
                                                    : Dtype::i64;
    ExampleFeature out{.name = std::move(name), .dtype = dtype};
    out.sequence = is_list;
    const bool always = is_list || times_ == expected;
    if (!same_ || !always || (most_ == 0 && !is_list)) {
      out.shape = {kUnknown};
    } else if (count_ != 1) {
      out.shape = {static_cast<std::int64_t>(count_)};
    }
    return out;
  }

 private:
  ListKind kind_ = ListKind::none;
  ListKind other_kind_ = ListKind::none;
  std::size_t count_ = 0;  // of the first one
  std::size_t most_ = 0;
  std::size_t times_ = 0;  // with a list
  std::size_t steps_ = 0;
  bool same_ = true;
  bool malformed_ = false;
};

/// By name and whether it is a list: first all features, then all lists.
using SeenFeatures = std::map<std::pair<bool, std::string>, SeenFeature>;

bool add_record(std::string_view payload, SeenFeatures& seen) {
  // The last of several entries of one name counts.
  std::map<std::pair<bool, std::string_view>, std::string_view> entries;
  const bool good =
      visit_features(payload, [&](bool is_list, std::string_view name, std::string_view value) {
        if (entries.size() < kFeaturesMax) entries[{is_list, name}] = value;
      });
  if (!good || entries.empty()) return false;
  for (const auto& [key, value] : entries) {
    SeenFeature& feature = seen[{key.first, std::string(key.second)}];
    key.first ? feature.add_steps(value) : feature.add(value);
    if (seen.size() >= kFeaturesMax)
      throw ConfigError(
          fmt::format("from_tfrecord: the first records have more than {} features", seen.size()),
          {}, kRemedy);
  }
  return true;
}

[[noreturn]] void refuse(const FirstRecords& first, const std::string& why) {
  Where where;
  where.file = first.file;
  throw ConfigError(fmt::format("from_tfrecord: features cannot be inferred: {}", why), where,
                    kRemedy);
}

std::string left_out_text(const std::vector<std::string>& left_out) {
  constexpr std::size_t kShown = 20;
  if (left_out.size() <= kShown) return fmt::format("{}", fmt::join(left_out, ", "));
  return fmt::format("{} and {} more", fmt::join(left_out.begin(), left_out.begin() + kShown, ", "),
                     left_out.size() - kShown);
}

}  // namespace

InferredFeatures infer_features(const FirstRecords& first) {
  if (first.records.empty()) refuse(first, "the first file with records has none to look at");
  SeenFeatures seen;
  std::size_t examples = 0;
  std::string why = "they are no tf.train.Example";
  for (const std::string& record : first.records) {
    // A damaged record fails later, when it is read; here it says nothing.
    const auto payload = tfrecord_payload(record);
    if (!payload) {
      why = payload.failure().message;
    } else if (add_record(*payload, seen)) {
      ++examples;
    }
  }
  if (examples == 0)
    refuse(first,
           fmt::format("of the first {} records none can be read: {}", first.records.size(), why));
  InferredFeatures out;
  std::vector<std::string> left_out;
  std::vector<FieldSpec> fields;
  for (const auto& [key, feature] : seen) {
    const auto& [is_list, name] = key;
    auto obstacle = feature.obstacle(is_list, examples);
    if (name.empty() || !is_utf8(name)) obstacle = "no name in UTF-8";
    if (is_list && seen.contains({false, name})) obstacle = "a feature list of the same name";
    if (obstacle) {
      left_out.push_back(fmt::format("{} ({})", printable(name), *obstacle));
      continue;
    }
    out.features.push_back(feature.feature(name, is_list, examples));
    fields.push_back(field_of(out.features.back()));
  }
  if (fields.empty())
    refuse(first, fmt::format("no feature can be read: {}", left_out_text(left_out)));
  out.notes = fmt::format("inferred from {}the first {} record{}: {}",
                          examples < first.records.size() ? fmt::format("{} of ", examples) : "",
                          first.records.size(), first.records.size() == 1 ? "" : "s",
                          ElementSpec::dict(std::move(fields)).text());
  if (!left_out.empty()) out.notes += "; left out: " + left_out_text(left_out);
  return out;
}

}  // namespace penstock
