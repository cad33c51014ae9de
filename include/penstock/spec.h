#pragma once
// What elements look like: the fields of a dataset, known before anything runs where possible.

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

/// The element spec of a dataset. `known` is false where only running a user function shows it.
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

  /// Index of the field at `path`, or nothing.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view path) const;
  /// "{id: i64[], x: f32[128]}", or "unknown".
  [[nodiscard]] std::string text() const;
  /// Nothing when `sample` has this spec, else what differs: the field and both sides.
  [[nodiscard]] std::optional<std::string> difference(const Sample& sample) const;
};

}  // namespace penstock
