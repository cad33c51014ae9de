#include "penstock/sample.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "penstock/error.h"

namespace penstock {
namespace {

std::string join(const std::string& prefix, const std::string& name) {
  if (prefix.empty()) return name;
  return name.empty() ? prefix : prefix + "/" + name;
}

void collect(const Structure& node, const std::string& prefix, std::vector<std::string>& paths) {
  if (node.kind == Structure::Kind::leaf) {
    paths.push_back(prefix);
    return;
  }
  for (const auto& [name, child] : node.children) collect(child, join(prefix, name), paths);
}

std::string render(const Structure& node, const std::vector<std::string>& leaves,
                   std::size_t& next) {
  if (node.kind == Structure::Kind::leaf) return leaves.at(next++);
  const bool dict = node.kind == Structure::Kind::dict;
  std::string text = dict ? "{" : "(";
  for (std::size_t i = 0; i < node.children.size(); ++i) {
    if (i > 0) text += ", ";
    if (dict) text += node.children[i].first + ": ";
    text += render(node.children[i].second, leaves, next);
  }
  return text + (dict ? "}" : ")");
}

}  // namespace

namespace {

/// A name may contain a '/', as in "image/encoded", unless that makes two paths equal.
void check_paths(const Structure& dict) {
  const bool slashes = std::ranges::any_of(
      dict.children, [](const auto& child) { return child.first.find('/') != std::string::npos; });
  if (!slashes) return;
  auto paths = dict.paths();
  std::ranges::sort(paths);
  const auto twice = std::ranges::adjacent_find(paths);
  if (twice != paths.end())
    throw ConfigError(fmt::format("two fields have the path \"{}\"", *twice), {},
                      "rename the one whose name contains a '/'");
}

}  // namespace

Structure Structure::tuple(std::vector<Structure> parts) {
  Structure structure;
  structure.kind = Kind::tuple;
  for (std::size_t i = 0; i < parts.size(); ++i)
    structure.children.emplace_back(fmt::format("{}", i), std::move(parts[i]));
  return structure;
}

std::vector<std::string> Structure::paths() const {
  std::vector<std::string> paths;
  collect(*this, "", paths);
  return paths;
}

std::string Structure::text(const std::vector<std::string>& leaves) const {
  std::size_t next = 0;
  return render(*this, leaves, next);
}

Sample::Sample(Tensor tensor) {
  leaves_.push_back(std::move(tensor));
}

Sample Sample::dict(std::vector<std::pair<std::string, Sample>> items) {
  std::ranges::sort(items, {}, [](const auto& item) { return item.first; });
  Sample sample;
  sample.structure_.kind = Structure::Kind::dict;
  for (auto& [name, part] : items) {
    if (name.empty()) throw ConfigError("a field cannot be called \"\"", {}, "give it a name");
    auto& children = sample.structure_.children;
    if (!children.empty() && children.back().first == name)
      throw ConfigError(fmt::format("field \"{}\" appears twice", name));
    children.emplace_back(name, std::move(part.structure_));
    for (Tensor& leaf : part.leaves_) sample.leaves_.push_back(std::move(leaf));
  }
  check_paths(sample.structure_);
  return sample;
}

Sample Sample::tuple(std::vector<Sample> parts) {
  Sample sample;
  std::vector<Structure> structures;
  for (Sample& part : parts) {
    structures.push_back(std::move(part.structure_));
    for (Tensor& leaf : part.leaves_) sample.leaves_.push_back(std::move(leaf));
  }
  sample.structure_ = Structure::tuple(std::move(structures));
  return sample;
}

namespace {

std::size_t leaves_in(const Structure& node) {
  if (node.kind == Structure::Kind::leaf) return 1;
  std::size_t count = 0;
  for (const auto& [name, child] : node.children) count += leaves_in(child);
  return count;
}

}  // namespace

Sample Sample::assemble(Structure structure, std::vector<Tensor> leaves) {
  if (leaves_in(structure) != leaves.size())
    throw ConfigError(fmt::format("a structure of {} leaves cannot hold {} tensors",
                                  leaves_in(structure), leaves.size()));
  Sample sample;
  sample.structure_ = std::move(structure);
  sample.leaves_ = std::move(leaves);
  return sample;
}

const Tensor& Sample::operator[](std::string_view path) const& {
  const auto paths = structure_.paths();
  for (std::size_t i = 0; i < leaves_.size(); ++i)
    if (paths[i] == path) return leaves_[i];
  throw ConfigError(
      fmt::format("no field \"{}\"; there are: \"{}\"", path, fmt::join(paths, "\", \"")));
}

}  // namespace penstock
