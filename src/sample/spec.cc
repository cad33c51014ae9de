#include "penstock/spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "penstock/error.h"

namespace penstock {

std::string FieldSpec::text() const {
  return fmt::format("{}{}", dtype_name(dtype), shape_text(shape));
}

ElementSpec ElementSpec::unknown() {
  ElementSpec spec;
  spec.known = false;
  return spec;
}

ElementSpec ElementSpec::none() {
  ElementSpec spec;
  spec.structure = Structure::tuple({});
  return spec;
}

ElementSpec ElementSpec::of(const Sample& sample) {
  ElementSpec spec;
  spec.structure = sample.structure();
  const auto paths = spec.structure.paths();
  for (std::size_t i = 0; i < paths.size(); ++i)
    spec.fields.push_back({paths[i], sample.leaves()[i].dtype(), sample.leaves()[i].shape()});
  return spec;
}

ElementSpec ElementSpec::single(Dtype dtype, Shape shape) {
  ElementSpec spec;
  spec.fields.push_back({"", dtype, std::move(shape)});
  return spec;
}

ElementSpec ElementSpec::dict(std::vector<FieldSpec> fields) {
  std::ranges::sort(fields, {}, &FieldSpec::path);
  ElementSpec spec;
  spec.structure.kind = Structure::Kind::dict;
  for (const FieldSpec& field : fields) {
    if (field.path.empty())
      throw ConfigError("a field cannot be called \"\"", {}, "give it a name");
    auto& children = spec.structure.children;
    if (!children.empty() && children.back().first == field.path)
      throw ConfigError(fmt::format("field \"{}\" appears twice", field.path));
    children.emplace_back(field.path, Structure{});
  }
  spec.fields = std::move(fields);
  return spec;
}

ElementSpec ElementSpec::tuple(const std::vector<ElementSpec>& parts) {
  ElementSpec spec;
  std::vector<Structure> structures;
  for (const ElementSpec& part : parts) {
    if (!part.known) return unknown();
    structures.push_back(part.structure);
    spec.fields.insert(spec.fields.end(), part.fields.begin(), part.fields.end());
  }
  spec.structure = Structure::tuple(std::move(structures));
  const auto paths = spec.structure.paths();
  for (std::size_t i = 0; i < paths.size(); ++i) spec.fields[i].path = paths[i];
  return spec;
}

std::optional<std::size_t> ElementSpec::find(std::string_view path) const {
  for (std::size_t i = 0; i < fields.size(); ++i)
    if (fields[i].path == path) return i;
  return std::nullopt;
}

std::string ElementSpec::text() const {
  if (!known) return "unknown";
  std::vector<std::string> leaves;
  for (const FieldSpec& field : fields) leaves.push_back(field.text());
  return structure.text(leaves);
}

std::optional<std::string> ElementSpec::difference(const Sample& sample) const {
  const ElementSpec other = of(sample);
  if (other.structure != structure)
    return fmt::format("the structure is {}, expected {}", other.text(), text());
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const FieldSpec& wanted = fields[i];
    const FieldSpec& got = other.fields[i];
    if (sample.leaves()[i].empty())
      return fmt::format("field \"{}\" has no tensor, expected {}", wanted.path, wanted.text());
    if (got.dtype != wanted.dtype || !shape_fits(got.shape, wanted.shape))
      return fmt::format("field \"{}\" is {}, expected {}", wanted.path, got.text(), wanted.text());
  }
  return std::nullopt;
}

}  // namespace penstock
