#pragma once
// Users' Python functions as functions of the engine. They are called in its threads, with the
// interpreter held for the call.

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "interpreter.h"
#include "penstock/dataset.h"
#include "penstock/function.h"

namespace penstock::python {

/// How a function wants its element.
struct Calling {
  bool keyed = false;      // it has a parameter `rng`
  bool random = false;     // it draws from rng()
  std::string title = {};  // where it is looked at for draws from the global generators
};

/// `fn` for one sample: a tuple is passed as its parts, anything else as one argument.
class SampleCall {
 public:
  SampleCall(nb::handle fn, Calling calling)
      : fn_(hold(fn)),
        calling_(std::move(calling)),
        looks_(std::make_shared<Looks>(calling_.title.empty() ? 0 : kLooks)) {}
  [[nodiscard]] bool random() const { return calling_.keyed || calling_.random; }
  /// Calls it and hands the result to `use`, while the interpreter is held.
  template <typename Use>
  auto operator()(const Sample& in, Rng* rng, Use use) const {
    return with_interpreter([&] { return use(call(in, rng)); });
  }

 private:
  static constexpr int kLooks = 8;
  /// With the interpreter held.
  struct Looks {
    explicit Looks(int calls) : left(calls) {}
    int left;
    int changed = 0;
  };
  [[nodiscard]] nb::object call(const Sample& in, Rng* rng) const;
  [[nodiscard]] nb::object looked_at(nb::handle arguments, nb::handle keywords) const;

  Held fn_;
  Calling calling_;
  std::shared_ptr<Looks> looks_;
};

/// `fn` of arrays with rows as their first dimension, each row on its own.
OpCall vector_op(nb::handle fn, const std::string& name, const std::optional<ElementSpec>& spec);
/// What `fn` returns for no rows.
ElementSpec probed_spec(nb::handle fn, const ElementSpec& input);

/// What makes iterators: `factory()` or, if it wants the epoch, `factory(epoch)`.
struct Factory {
  Held call;
  bool takes_epoch = false;
  bool has_cursor = false;
  std::optional<ElementSpec> spec;
};

}  // namespace penstock::python
