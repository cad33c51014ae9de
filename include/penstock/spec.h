#pragma once
// Element specs: the fields of a dataset, known before anything runs if possible.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <penstock/sample.h>

namespace penstock {

struct FieldSpec {
  std::string path;
  Dtype dtype = Dtype::u8;
  Shape shape;
  bool operator==(const FieldSpec&) const = default;
  [[nodiscard]] std::string text() const;
};

/// The element spec of a dataset. `known` is false if only running a user's
/// function would show it.
struct ElementSpec {
  bool known = true;
  Structure structure;
  std::vector<FieldSpec> fields;

  bool operator==(const ElementSpec&) const = default;
  static ElementSpec unknown();
  /// No fields at all.
  static ElementSpec none();
  static ElementSpec of(const Sample& sample);
  /// One field without structure.
  static ElementSpec single(Dtype dtype, Shape shape = {});
  static ElementSpec dict(std::vector<FieldSpec> fields);
  static ElementSpec tuple(const std::vector<ElementSpec>& parts);

  /// Index of the field at `path`, or nullopt.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view path) const;
  /// "{id: i64[], x: f32[128]}", or "unknown".
  [[nodiscard]] std::string text() const;
  /// Returns nullopt if `sample` has this spec, else the first difference: the field and both
  /// sides.
  [[nodiscard]] std::optional<std::string> difference(const Sample& sample) const;
};

}  // namespace penstock
