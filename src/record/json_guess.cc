// tested in src/record/jsonl_test.cc
#include "record/json_guess.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/json.h"
#include "base/printable.h"
#include "penstock/error.h"
#include "record/json_parse.h"

namespace penstock {
namespace {

/// What the first records have in one place: under a key, or in the lists under a key.
struct Guess {
  std::string key;
  bool boolean = false;
  bool number = false;
  bool text = false;
  bool object = false;
  bool list = false;
  // Of numbers
  bool negative = false;
  bool large = false;  // beyond i64
  bool real = false;
  // Of lists
  std::optional<Shape> item_shape = {};
  bool items_differ = false;
  /// Of objects, by key; of lists the values inside, of any depth.
  std::vector<Guess> children = {};

  Guess& child(const std::string& name) {
    const auto found = std::ranges::find(children, name, &Guess::key);
    if (found != children.end()) return *found;
    children.push_back({.key = name});
    return children.back();
  }
  [[nodiscard]] int types() const {
    return int{boolean} + int{number} + int{text} + int{object} + int{list};
  }
};

void add_value(Guess& guess, const Json& value);

/// The shape of an item of a list; nothing if sizes differ within it. Adds its values.
std::optional<Shape> add_item(Guess& values, const Json& item) {
  if (!item.is_array()) {
    add_value(values, item);
    return Shape{};
  }
  std::optional<Shape> inside;
  for (const Json& one : item) {
    auto shape = add_item(values, one);
    if (!shape || (inside && *inside != *shape)) return std::nullopt;
    inside = std::move(shape);
  }
  Shape shape = inside.value_or(Shape{});
  shape.insert(shape.begin(), static_cast<std::int64_t>(item.size()));
  return shape;
}

void add_list(Guess& guess, const Json& list) {
  guess.list = true;
  for (const Json& item : list) {
    const auto shape = add_item(guess.child({}), item);
    if (item.is_null()) continue;
    if (!guess.item_shape) guess.item_shape = shape;
    guess.items_differ = guess.items_differ || !shape || guess.item_shape != shape;
  }
}

void add_value(Guess& guess, const Json& value) {
  if (value.is_boolean()) {
    guess.boolean = true;
  } else if (value.is_string()) {
    guess.text = true;
  } else if (value.is_array()) {
    add_list(guess, value);
  } else if (value.is_object()) {
    guess.object = true;
    for (const auto& [key, inside] : value.items()) add_value(guess.child(key), inside);
  } else if (value.is_number()) {
    guess.number = true;
    if (value.is_number_float()) {
      guess.real = true;
    } else if (value.is_number_unsigned()) {
      guess.large = guess.large || value.get<std::uint64_t>() > std::uint64_t{INT64_MAX};
    } else {
      guess.negative = guess.negative || value.get<std::int64_t>() < 0;
    }
  }
}

/// Makes fields of what was found.
class Fields {
 public:
  explicit Fields(const JsonLinesOptions& options) : options_(options) {}

  void add(const Guess& guess, const std::string& path) {
    if (guess.key.empty() || guess.key.find('/') != std::string::npos) {
      leave_out(path, "its name is empty or has a '/'");
    } else if (guess.types() == 0) {
      leave_out(path, "only null");
    } else if (guess.types() > 1) {
      leave_out(path, "values of several types");
    } else if (guess.object) {
      if (guess.children.empty()) leave_out(path, "empty objects");
      for (const Guess& child : guess.children) add(child, path + "/" + child.key);
    } else if (guess.list) {
      add_list(guess, path);
    } else {
      result_.fields.push_back({path, dtype(guess, path), {}});
    }
  }
  [[nodiscard]] GuessedFields result() && { return std::move(result_); }

 private:
  void leave_out(const std::string& path, const char* why) {
    result_.left_out.push_back(fmt::format("{} ({})", excerpt(path), why));
  }

  void add_list(const Guess& guess, const std::string& path) {
    if (guess.children.empty() || guess.children[0].types() == 0)
      return leave_out(path, "empty lists");
    const Guess& values = guess.children[0];
    if (values.text || values.object || values.types() > 1)
      return leave_out(path, "lists of other things than numbers");
    if (guess.items_differ) return leave_out(path, "lists of lists of different sizes");
    Shape shape{kUnknown};
    const Shape inner = guess.item_shape.value_or(Shape{});
    shape.insert(shape.end(), inner.begin(), inner.end());
    result_.fields.push_back({path, dtype(values, path), std::move(shape)});
  }

  [[nodiscard]] Dtype dtype(const Guess& guess, const std::string& path) const {
    if (guess.text) return Dtype::string;
    if (guess.boolean) return Dtype::boolean;
    if (guess.real || (guess.large && guess.negative)) return options_.floats;
    const auto null = options_.nulls.find(path);
    if (null != options_.nulls.end() && std::holds_alternative<double>(null->second)) {
      const double value = std::get<double>(null->second);
      if (std::trunc(value) != value || std::isinf(value)) return options_.floats;
    }
    return guess.large ? Dtype::u64 : Dtype::i64;
  }

  const JsonLinesOptions& options_;
  GuessedFields result_;
};

std::string joined(const std::vector<std::string>& left_out) {
  constexpr std::size_t kListedMax = 10;
  std::string text;
  for (std::size_t i = 0; i < left_out.size() && i < kListedMax; ++i)
    text += (i == 0 ? "" : ", ") + left_out[i];
  return left_out.size() > kListedMax ? fmt::format("{}, ... ({} in all)", text, left_out.size())
                                      : text;
}

}  // namespace

std::string GuessedFields::left_out_text() const {
  return joined(left_out);
}

GuessedFields guess_json_fields(const JsonLinesOptions& options, const FirstRecords& first) {
  constexpr const char* kRemedy = "name the fields to read, with their types";
  Guess all{.key = "all"};
  std::optional<Failure> failure;
  for (const std::string& record : first.records) {
    // Records that fail are for the policy of the loader.
    auto json = parse_json_record(record, nullptr);
    if (json) {
      add_value(all, *json);
    } else if (!failure) {
      failure = std::move(json.failure());
    }
  }
  if (!all.object)
    throw ConfigError(
        failure ? fmt::format("from_jsonl: none of the first {} records of {} can be read: {}",
                              first.records.size(), printable(first.file), failure->message)
                : fmt::format("from_jsonl: {} has no records, from which fields could be inferred",
                              printable(first.file)),
        {}, failure ? failure->remedy : kRemedy);
  Fields fields(options);
  for (const Guess& child : all.children) fields.add(child, child.key);
  GuessedFields result = std::move(fields).result();
  if (result.fields.empty())
    throw ConfigError(
        fmt::format("from_jsonl: the first {} records of {} have no fields that can be read{}",
                    first.records.size(), printable(first.file),
                    result.left_out.empty() ? "" : ": " + result.left_out_text()),
        {}, kRemedy);
  return result;
}

}  // namespace penstock
