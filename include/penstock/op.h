#pragma once
// Ops of the catalogue, for `Dataset::map`. Those for images are in image.h.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <penstock/tensor.h>

namespace penstock {

class Op;

/// An op of the catalogue with its arguments, as returned by `cast(Dtype::f32)`. Immutable.
class OpCall {
 public:
  explicit OpCall(std::shared_ptr<const Op> op) : op_(std::move(op)) {}
  [[nodiscard]] const std::shared_ptr<const Op>& op() const { return op_; }

 private:
  std::shared_ptr<const Op> op_;
};

/// Converts the field at `path`: floats are truncated to integers, integers wrap around.
OpCall cast(Dtype dtype, std::string path = "");

/// Which end of a row `truncate` keeps.
enum class Keep : std::uint8_t { first, last };
/// Cuts the first dimension of the field at `path` to at most `length`.
OpCall truncate(std::int64_t length, std::string path = "", Keep keep = Keep::first);

/// Replaces the field `path`, the path of a file, by the bytes of that file. A sample whose file
/// has more than `bytes_max` bytes fails without reading it.
OpCall read_file(std::string path = "", std::uint64_t bytes_max = std::uint64_t{1} << 30);

}  // namespace penstock
