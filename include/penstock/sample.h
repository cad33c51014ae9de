#pragma once
// One element of a dataset as a user function sees it: a tensor, or a dict or tuple of samples.
// Structures nest; fields flatten to paths such as "image", "0" or "meta/id", no two of them equal.
// The keys of a dict are sorted, so that equal keys give equal structures; they may contain a '/'.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <penstock/tensor.h>

namespace penstock {

/// The nesting of a sample, without its tensors.
struct Structure {
  enum class Kind : std::uint8_t { leaf, dict, tuple };
  Kind kind = Kind::leaf;
  std::vector<std::pair<std::string, Structure>> children;

  bool operator==(const Structure&) const = default;
  static Structure tuple(std::vector<Structure> parts);
  /// Paths of the leaves in order; "" for a single leaf.
  [[nodiscard]] std::vector<std::string> paths() const;
  /// "(a, b)" and "{x: .., y: ..}" with the given text at each leaf.
  [[nodiscard]] std::string text(const std::vector<std::string>& leaves) const;
};

class Sample {
 public:
  /// An empty tuple.
  Sample() { structure_.kind = Structure::Kind::tuple; }
  Sample(Tensor tensor);  // NOLINT: a tensor is a sample
  static Sample dict(std::vector<std::pair<std::string, Sample>> items);
  static Sample tuple(std::vector<Sample> parts);
  /// From a structure and its leaves in order.
  static Sample assemble(Structure structure, std::vector<Tensor> leaves);

  [[nodiscard]] const Structure& structure() const { return structure_; }
  [[nodiscard]] const std::vector<Tensor>& leaves() const& { return leaves_; }
  [[nodiscard]] std::vector<Tensor> leaves() && { return std::move(leaves_); }
  /// The tensor at `path`. Throws ConfigError that lists the existing paths.
  [[nodiscard]] const Tensor& operator[](std::string_view path) const&;
  [[nodiscard]] Tensor operator[](std::string_view path) && { return std::as_const(*this)[path]; }
  /// The only tensor of a sample without structure.
  [[nodiscard]] const Tensor& tensor() const& { return (*this)[""]; }
  [[nodiscard]] Tensor tensor() && { return std::as_const(*this)[""]; }

 private:
  Structure structure_;
  std::vector<Tensor> leaves_;
};

}  // namespace penstock
