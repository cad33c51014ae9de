#include "record/tfds_features.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <optional>
#include <utility>

#include "base/json.h"
#include "base/printable.h"
#include "penstock/error.h"

namespace penstock {
namespace {

/// The member of an object, or nothing.
const Json* member(const Json& json, const char* name) {
  if (!json.is_object()) return nullptr;
  const auto found = json.find(name);
  return found == json.end() ? nullptr : &*found;
}

std::string text_of(const Json& json, const char* name) {
  const Json* const text = member(json, name);
  return text != nullptr && text->is_string() ? text->get<std::string>() : "";
}

/// Whole numbers are stored as texts; -1 is unknown.
std::int64_t size_of(const Json& json) {
  if (json.is_number_integer()) return whole_number<std::int64_t>(json);
  if (json.is_null()) return kUnknown;
  const auto text = json.get<std::string>();
  std::int64_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error != std::errc() || end != text.data() + text.size())
    throw Json::type_error::create(302, "\"" + text + "\" is no size", &json);
  return size;
}

Shape shape_of(const Json& content) {
  Shape shape;
  const Json* const given = member(content, "shape");
  const Json* const sizes = given == nullptr ? nullptr : member(*given, "dimensions");
  if (sizes == nullptr) return shape;
  for (const Json& size : *sizes) shape.push_back(std::max(size_of(size), kUnknown));
  return shape;
}

std::optional<Dtype> dtype_of(const std::string& name) {
  static constexpr std::array<std::pair<std::string_view, Dtype>, 16> kNames = {{
      {"bool", Dtype::boolean},
      {"uint8", Dtype::u8},
      {"uint16", Dtype::u16},
      {"uint32", Dtype::u32},
      {"uint64", Dtype::u64},
      {"int8", Dtype::i8},
      {"int16", Dtype::i16},
      {"int32", Dtype::i32},
      {"int64", Dtype::i64},
      {"float16", Dtype::f16},
      {"bfloat16", Dtype::bf16},
      {"float32", Dtype::f32},
      {"float64", Dtype::f64},
      {"string", Dtype::bytes},  // of TensorFlow: any bytes
      {"object", Dtype::bytes},
      {"bytes", Dtype::bytes},
  }};
  const auto* const found = std::ranges::find(kNames, std::string_view(name),
                                              [](const auto& each) { return each.first; });
  if (found == kNames.end()) return std::nullopt;
  return found->second;
}

class TfdsReader {
 public:
  TfdsFeatures read(const Json& root) {
    if (const Json* const dict = dict_of(root)) {
      add_dict("", *dict, {});
    } else {
      throw Json::type_error::create(302, "there is no featuresDict", &root);
    }
    return std::move(out_);
  }

 private:
  /// Sizes of the sequences around a feature.
  using Outer = Shape;

  /// The named features of a dict. Older files have them as a text in "content".
  const Json* dict_of(const Json& feature) {
    const Json* dict = member(feature, "featuresDict");
    if (dict == nullptr) dict = member(feature, "content");
    if (dict != nullptr && dict->is_string()) {
      auto parsed = parse_json(dict->get<std::string>());
      if (!parsed) return nullptr;
      dict = contents_.emplace_back(std::make_unique<Json>(std::move(*parsed))).get();
    }
    return dict == nullptr ? nullptr : member(*dict, "features");
  }

  void add_dict(const std::string& prefix, const Json& features, const Outer& outer) {
    if (!features.is_object())
      throw Json::type_error::create(302, "features is no object", &features);
    for (const auto& [name, feature] : features.items())
      add(prefix.empty() ? name : fmt::format("{}/{}", prefix, name), feature, outer);
  }

  void add(const std::string& name, const Json& feature, const Outer& outer) {
    if (const Json* const dict = member(feature, "featuresDict") ? dict_of(feature) : nullptr)
      return add_dict(name, *dict, outer);
    if (const Json* const sequence = member(feature, "sequence"))
      return add_sequence(name, *sequence, outer);
    if (member(feature, "image") || member(feature, "labeledImage"))
      return add_text(name, Dtype::bytes, "several encoded images in one record", outer);
    if (member(feature, "text"))
      return add_text(name, Dtype::string, "several texts in one record", outer);
    if (member(feature, "classLabel")) return add_numbers(name, Dtype::i64, {}, outer);
    if (member(feature, "boundingBox") || member(feature, "bboxFeature"))
      return add_numbers(name, Dtype::f32, {4}, outer);
    for (const char* const word : {"tensor", "scalar", "audio"})
      if (const Json* const content = member(feature, word))
        return add_tensor(name, *content, outer);
    if (const Json* const translation = member(feature, "translation"))
      return add_translation(name, *translation, outer);
    if (member(feature, "video")) return leave_out(name, "several encoded images in one record");
    std::string kind = text_of(feature, "pythonClassName");
    kind = kind.substr(kind.rfind('.') + 1);
    leave_out(name,
              kind.empty() ? "of an unknown kind" : fmt::format("of the kind {}", printable(kind)));
  }

  void add_sequence(const std::string& name, const Json& sequence, Outer outer) {
    const Json* const inner = member(sequence, "feature");
    if (inner == nullptr) return leave_out(name, "a sequence of an unknown kind");
    const Json* const length = member(sequence, "length");
    const std::int64_t size = length == nullptr ? kUnknown : size_of(*length);
    outer.push_back(size > 0 ? size : kUnknown);
    add(name, *inner, outer);
  }

  void add_text(const std::string& name, Dtype dtype, const char* why, const Outer& outer) {
    if (!outer.empty()) return leave_out(name, why);
    out_.features.push_back({.name = name, .dtype = dtype});
  }

  void add_numbers(const std::string& name, Dtype dtype, const Shape& inner, const Outer& outer,
                   bool raw = false) {
    // Each level has its own lengths in the record, and the values are under another name.
    if (outer.size() > 1) return leave_out(name, "a sequence of sequences");
    Shape shape = outer;
    shape.insert(shape.end(), inner.begin(), inner.end());
    if (std::ranges::count(shape, kUnknown) > 1)
      return leave_out(name, fmt::format("of the shape {}", shape_text(shape)));
    ExampleFeature feature{.name = name, .dtype = dtype, .shape = std::move(shape)};
    feature.raw = raw;
    out_.features.push_back(std::move(feature));
  }

  void add_tensor(const std::string& name, const Json& content, const Outer& outer) {
    const std::string dtype_text = text_of(content, "dtype");
    const auto dtype = dtype_of(dtype_text);
    if (!dtype) return leave_out(name, fmt::format("of {}", printable(dtype_text)));
    const Shape shape = shape_of(content);
    if (is_variable(*dtype)) {
      if (!shape.empty()) return leave_out(name, "several texts in one record");
      return add_text(name, *dtype, "several texts in one record", outer);
    }
    const std::string encoding = text_of(content, "encoding");
    if (encoding.empty() || encoding == "none") return add_numbers(name, *dtype, shape, outer);
    if (encoding != "bytes")
      return leave_out(name, fmt::format("{} of numbers", printable(encoding)));
    if (!outer.empty()) return leave_out(name, "a sequence of arrays as bytes");
    add_numbers(name, *dtype, shape, outer, true);
  }

  void add_translation(const std::string& name, const Json& content, const Outer& outer) {
    const Json* const variable = member(content, "variableLanguagesPerExample");
    const Json* const languages = member(content, "languages");
    if (languages == nullptr || (variable != nullptr && variable->get<bool>()))
      return leave_out(name, "several texts in one record");
    for (const Json& language : *languages)
      add_text(fmt::format("{}/{}", name, language.get<std::string>()), Dtype::string,
               "several texts in one record", outer);
  }

  void leave_out(const std::string& name, const std::string& why) {
    out_.left_out.push_back(fmt::format("{} ({})", printable(name), why));
  }

  TfdsFeatures out_;
  std::vector<std::unique_ptr<Json>> contents_;
};

}  // namespace

TfdsFeatures parse_tfds_features(std::string_view json, const std::string& file) {
  constexpr const char* kRemedy = "name the features to read";
  Where where;
  where.file = file;
  const auto root = parse_json(json);
  if (!root) throw ConfigError("from_tfrecord: features.json is not JSON", where, kRemedy);
  TfdsFeatures read;
  try {
    read = TfdsReader().read(*root);
  } catch (const Json::exception& error) {
    throw ConfigError(
        fmt::format("from_tfrecord: features.json is not that of a dataset: {}", error.what()),
        where, kRemedy);
  }
  if (read.features.empty())
    throw ConfigError(fmt::format("from_tfrecord: no feature of features.json can be read: {}",
                                  fmt::join(read.left_out, ", ")),
                      where, "read raw records, and decode them in a map");
  return read;
}

}  // namespace penstock
