#pragma once
// Generators in the form that `from_generator` accepts, behind one type: a factory of runs, each of
// which yields the elements of one traversal. Elements are numbers, tuples, structs with `fields()`
// or Samples.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <penstock/spec.h>

namespace penstock {

/// A member of a struct that describes samples: `static constexpr auto fields() { return
/// std::tuple(field("x", &Point::x), field("label", &Point::label)); }` makes Point a dict.
template <typename C, typename M>
struct Field {
  std::string_view name;
  M C::* member;
};
template <typename C, typename M>
constexpr Field<C, M> field(std::string_view name, M C::* member) {
  return {name, member};
}

/// Which traversal of the data a generator is created for.
struct GeneratorStart {
  std::uint64_t epoch = 0;
  std::uint64_t round = 0;  // of repeats, combined
};

/// One run of a generator. Used by one thread at a time.
class GeneratorRun {
 public:
  /// Where elements go: to `columns` if the generator's type determines their spec, else to `put`.
  struct Pull {
    std::span<std::byte* const> columns;
    std::size_t rows = 0;  // requested
    std::size_t made = 0;  // so far
    bool ended = false;
    std::function<bool(std::size_t row)> wanted;  // false once the loader stops
    std::function<void(std::size_t row, Sample sample)> put;
  };
  virtual ~GeneratorRun() = default;
  virtual void pull(Pull& pull) = 0;
  [[nodiscard]] virtual std::string save() = 0;
  virtual void restore(const std::string& cursor) = 0;
};

/// Creates the runs of a generator.
struct GeneratorFn {
  ElementSpec spec;         // unknown if it yields Samples
  bool has_cursor = false;  // its runs save and restore
  std::function<std::unique_ptr<GeneratorRun>(GeneratorStart)> open;
};

}  // namespace penstock
