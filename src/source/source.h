#pragma once
// A source of numbered samples. Const and stateless: any thread may ask for any block, any number
// of times, and gets the same bytes.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/io.h"
#include "base/json_fwd.h"
#include "base/result.h"
#include "penstock/block.h"
#include "penstock/dataset.h"

namespace penstock {

/// Bytes that a block needs.
struct Read {
  std::string object;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

class Source {
 public:
  virtual ~Source() = default;
  /// The word users wrote: "range", "from_index".
  [[nodiscard]] virtual std::string word() const = 0;
  [[nodiscard]] virtual std::uint64_t size() const = 0;
  [[nodiscard]] virtual const ElementSpec& spec() const = 0;
  /// One short line: "range(0, 10, 1)".
  [[nodiscard]] virtual std::string describe() const = 0;
  /// What makes this the same data as another source; goes into the order digest.
  virtual void identify(Digest& digest) const = 0;
  /// Arguments that make it again on another machine, or nothing where data or a function must be
  /// there already under a name.
  [[nodiscard]] virtual Json arguments() const;
  [[nodiscard]] virtual std::string name() const { return {}; }

  /// First half: what must be read for these samples, in order. Nothing for data in memory.
  virtual void reads(std::span<const std::uint64_t> /*numbers*/, std::vector<Read>&) const {}
  /// Second half: writes sample numbers[i] to row i. `bytes` answers `reads`, one each.
  virtual Result<void> decode(std::span<const std::uint64_t> numbers, std::span<const Bytes> bytes,
                              const BlockView& out) const = 0;
};

std::shared_ptr<const Source> make_range(std::int64_t start, std::int64_t stop, std::int64_t step);
std::shared_ptr<const Source> make_tensors(Sample sample, std::string name);
std::shared_ptr<const Source> make_tensor_slices(Sample tensors, std::string name);
std::shared_ptr<const Source> make_index(std::uint64_t size, IndexFn fn, std::string name);

}  // namespace penstock
