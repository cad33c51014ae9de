#pragma once
// Users' Python functions as functions of the engine. Engine threads call them with the GIL held.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "callee.h"
#include "interpreter.h"
#include "penstock/dataset.h"
#include "penstock/function.h"

namespace penstock::python {

/// How a function receives its element.
struct Calling {
  bool keyed = false;      // it has a parameter `rng`
  bool random = false;     // it draws from rng()
  std::string title = {};  // the name in warnings about the global generators
};

/// The seed of a sample's generator: computed when it is needed, or by the process that sent the
/// sample.
struct GeneratorKey {
  Rng* rng = nullptr;
  std::optional<std::pair<std::uint64_t, std::uint64_t>> drawn = {};
  [[nodiscard]] bool any() const { return rng != nullptr || drawn.has_value(); }
  std::pair<std::uint64_t, std::uint64_t> draw();
};

/// `fn` for one sample: a tuple is passed as its parts, anything else as one argument.
class SampleCall {
 public:
  SampleCall(nb::handle fn, Calling calling)
      : fn_(fn),
        calling_(std::move(calling)),
        looks_(std::make_shared<Looks>(calling_.title.empty() ? 0 : kLooks)) {}
  [[nodiscard]] bool random() const { return calling_.keyed || calling_.random; }
  /// Calls it and passes the result to `use`, with the GIL held.
  template <typename Use>
  auto operator()(const Sample& in, Rng* rng, Use use) const {
    return with_interpreter([&] { return use(call(in, {rng, {}})); });
  }
  /// Call it with the GIL held.
  [[nodiscard]] nb::object call(const Sample& in, const GeneratorKey& key) const;
  /// Called instead of printing the warning that the function draws from the global generators.
  void when_noticed(std::function<void()> tell) { tell_ = std::move(tell); }

 private:
  static constexpr int kLooks = 8;
  /// Call it with the GIL held.
  struct Looks {
    explicit Looks(int calls) : left(calls) {}
    int left;
    int changed = 0;
  };
  [[nodiscard]] nb::object looked_at(nb::handle arguments, nb::handle keywords) const;

  Callee fn_;
  Calling calling_;
  std::shared_ptr<Looks> looks_;
  std::function<void()> tell_;
};

/// Calls `fn` with arrays that have rows as their first dimension. Needs the GIL.
nb::object call_rows(nb::handle fn, const Sample& rows);
/// Calls `fn` with a list of samples. Needs the GIL.
nb::object call_samples(nb::handle fn, const std::vector<Sample>& samples);
/// The spec of one row of the result of such a function. Throws ConfigError if a field does not
/// have `rows` rows.
ElementSpec row_spec(const Sample& made, std::size_t rows);
/// Writes the result; throws ConfigError if it does not match `out`.
void write_rows(const Sample& made, const BlockView& out);
/// A sample as a block of one row, valid as long as the sample; and the reverse.
Sample as_rows(const Sample& one);
Sample only_row(const Sample& made);
/// Some rows of a block as one sample; throws ConfigError for fields without a fixed size.
Sample columns_of(const BlockView& in, std::size_t first, std::size_t rows);

/// `fn` of arrays with rows as their first dimension, each row independent of the others.
OpCall vector_op(nb::handle fn, const std::string& name, const std::optional<ElementSpec>& spec);
/// The result of `fn` for no rows.
ElementSpec probed_spec(nb::handle fn, const ElementSpec& input);

/// Creates iterators: `factory()` or, if it takes the epoch, `factory(epoch)`.
struct Factory {
  Callee call;
  bool takes_epoch = false;
  bool has_cursor = false;
  std::optional<ElementSpec> spec;
};

}  // namespace penstock::python
