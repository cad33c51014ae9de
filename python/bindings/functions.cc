#include "functions.h"

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <cstring>
#include <utility>
#include <vector>

#include "areas.h"
#include "base/guarded.h"
#include "op/op.h"
#include "sample/rows.h"
#include "short_turn.h"
#include "values.h"

namespace penstock::python {
namespace {

/// The sample that a function is called for, for `rng()`.
struct Current {
  GeneratorKey key;
  const char* without = nullptr;  // why there are no numbers
  nb::object generator;
};
thread_local Current* current = nullptr;

class CurrentScope {
 public:
  CurrentScope(GeneratorKey key, const char* without)
      : mine_{std::move(key), without, {}}, before_(current) {
    current = &mine_;
  }
  ~CurrentScope() { current = before_; }
  CurrentScope(const CurrentScope&) = delete;
  CurrentScope& operator=(const CurrentScope&) = delete;

 private:
  Current mine_;
  Current* before_;
};

constexpr const char* kUndeclared =
    "this function was not declared to draw random numbers when it was passed to map";

nb::object generator() {
  if (current == nullptr)
    throw ConfigError("rng() was called outside a map function: there is no sample to key it by");
  if (!current->key.any())
    throw ConfigError(fmt::format("rng(): {}", current->without), {},
                      "give the function a parameter named rng, or use map(fn, random=True)");
  if (!current->generator) {
    const auto [low, high] = current->key.draw();
    current->generator =
        nb::module_::import_("penstock.randomness").attr("keyed_generator")(low, high);
  }
  return current->generator;
}

nb::tuple arguments_of(const Sample& in) {
  nb::object value = to_python(in);
  if (in.structure().kind == Structure::Kind::tuple) return nb::borrow<nb::tuple>(value);
  return nb::make_tuple(value);
}

}  // namespace

std::pair<std::uint64_t, std::uint64_t> GeneratorKey::draw() {
  if (drawn) return *drawn;
  const std::uint64_t low = (*rng)();
  const std::uint64_t high = (*rng)();
  return {low, high};
}

nb::object SampleCall::call(const Sample& in, const GeneratorKey& key) const {
  const CurrentScope scope(random() ? key : GeneratorKey{}, kUndeclared);
  const nb::tuple arguments = arguments_of(in);
  nb::object keywords;
  if (calling_.keyed) {
    keywords = nb::dict();
    keywords["rng"] = generator();
  }
  return looks_->left > 0 ? looked_at(arguments, keywords)
                          : call_user(fn_.get(), arguments, keywords);
}

nb::object SampleCall::looked_at(nb::handle arguments, nb::handle keywords) const {
  --looks_->left;
  const nb::object state = nb::module_::import_("penstock.randomness").attr("global_state");
  const nb::object before = state();
  nb::object made = call_user(fn_.get(), arguments, keywords);
  // Another thread may have done it meanwhile.
  if (!before.equal(state()) && ++looks_->changed == 2) {
    looks_->left = 0;
    if (tell_) {
      tell_();
    } else {
      nb::module_::import_("penstock.randomness").attr("tell_of_global_use")(calling_.title);
    }
  }
  return made;
}

constexpr const char* kBlocks = "this function receives several samples per call";

nb::object call_rows(nb::handle fn, const Sample& rows) {
  const CurrentScope scope(GeneratorKey{}, kBlocks);
  return call_user(fn, arguments_of(rows));
}

nb::object call_samples(nb::handle fn, const std::vector<Sample>& samples) {
  const CurrentScope scope(GeneratorKey{}, kBlocks);
  nb::list list;
  for (const Sample& sample : samples) list.append(to_python(sample));
  return call_user(fn, nb::make_tuple(list));
}

Sample columns_of(const BlockView& in, std::size_t first, std::size_t rows) {
  std::vector<Tensor> leaves;
  for (std::size_t i = 0; i < in.columns.size(); ++i) {
    const FieldSpec& field = in.spec->fields[i];
    const Column& column = in.columns[i];
    if (!column.dense())
      throw ConfigError(
          fmt::format("map_batch: field \"{}\" ({}) has no fixed size", field.path, field.text()),
          {}, "use map(), which receives one sample at a time");
    Shape shape = field.shape;
    shape.insert(shape.begin(), static_cast<std::int64_t>(rows));
    leaves.push_back(Tensor::view(field.dtype, std::move(shape),
                                  {column.data + first * column.row_bytes, rows * column.row_bytes},
                                  nullptr));
  }
  return Sample::assemble(in.spec->structure, std::move(leaves));
}

ElementSpec row_spec(const Sample& made, std::size_t rows) {
  ElementSpec spec = ElementSpec::of(made);
  for (FieldSpec& field : spec.fields) {
    if (field.shape.empty() || field.shape.front() != static_cast<std::int64_t>(rows))
      throw ConfigError(
          fmt::format("map_batch: the function was given {} rows, field \"{}\" of its result is {}",
                      rows, field.path, field.text()),
          {}, "return one row per input row; to change their number use filter or flat_map");
    field.shape.erase(field.shape.begin());
  }
  return spec;
}

void write_rows(const Sample& made, const BlockView& out) {
  const ElementSpec spec = row_spec(made, out.rows);
  if (spec != *out.spec)
    throw ConfigError(fmt::format("map_batch: the function returned rows of {}, not of {}",
                                  spec.text(), out.spec->text()),
                      {},
                      "return the same structure, dtypes and shapes every time, also for no "
                      "rows, or declare spec=");
  for (std::size_t i = 0; i < out.columns.size(); ++i) {
    const std::span<const std::byte> bytes = made.leaves()[i].raw();
    if (!bytes.empty()) std::memcpy(out.columns[i].data, bytes.data(), bytes.size());
  }
}

Sample as_rows(const Sample& one) {
  std::vector<Tensor> rows;
  for (const Tensor& leaf : one.leaves()) {
    Shape shape = leaf.shape();
    shape.insert(shape.begin(), 1);
    rows.push_back(Tensor::view(leaf.dtype(), std::move(shape), leaf.raw(), nullptr));
  }
  return Sample::assemble(one.structure(), std::move(rows));
}

Sample only_row(const Sample& made) {
  const ElementSpec spec = row_spec(made, 1);
  std::vector<Tensor> leaves;
  for (std::size_t i = 0; i < spec.fields.size(); ++i) {
    const auto kept = std::make_shared<Tensor>(made.leaves()[i].kept());
    leaves.push_back(Tensor::view(spec.fields[i].dtype, spec.fields[i].shape, kept->raw(), kept));
  }
  return Sample::assemble(made.structure(), std::move(leaves));
}

namespace {

class VectorOp final : public Op {
 public:
  VectorOp(nb::handle fn, std::string name, std::optional<ElementSpec> spec)
      : fn_(fn), name_(std::move(name)), spec_(std::move(spec)) {}
  [[nodiscard]] std::string word() const override { return "map"; }
  [[nodiscard]] std::string describe() const override {
    return fmt::format("map_batch \"{}\"", name_);
  }
  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] bool prefers_long_blocks() const override { return true; }
  [[nodiscard]] ElementSpec output(const ElementSpec&) const override {
    return spec_.value_or(ElementSpec::unknown());
  }

  Result<void> run(const BlockView& in, const BlockView& out, const OpContext&) const override {
    auto done =
        guarded([&] { run_block(columns_of(in, 0, in.rows), out); }, [] { return std::size_t{0}; });
    if (!done) done.failure().row_known = in.rows == 1;
    return done;
  }

  [[nodiscard]] Result<Sample> run_sample(const Sample& in, const OpContext&,
                                          std::size_t row) const override {
    Sample made;
    auto done = guarded([&] { made = only_row(call(as_rows(in))); }, [&] { return row; });
    if (!done) return std::move(done.failure());
    return made;
  }

 private:
  /// Small arrays are copied and released while the GIL is held; large ones are copied while other
  /// threads hold it.
  void run_block(const Sample& rows, const BlockView& out) const {
    Sample large;
    std::optional<ShortTurn> turn(std::in_place, cost_);
    with_interpreter([&] {
      const ShortTurn::Measured measured(cost_);
      const nb::object result = call_rows(fn_.get(), rows);
      if (write_plain(result, out)) return;
      Sample made = sample_made(result);
      std::size_t bytes = 0;
      for (const Tensor& leaf : made.leaves()) bytes += leaf.raw().size();
      if (bytes <= kSmall) {
        write_rows(made, out);
        made = {};
        give_back_held();
      } else {
        large = std::move(made);
      }
    });
    turn.reset();
    if (!large.leaves().empty()) write_rows(large, out);
  }

  /// A single array as declared, which is nearly always the case, takes a shortcut.
  static bool write_plain(nb::handle result, const BlockView& out) {
    if (out.columns.size() != 1 || out.spec->structure.kind != Structure::Kind::leaf) return false;
    const FieldSpec& field = out.spec->fields.front();
    Shape shape = field.shape;
    shape.insert(shape.begin(), static_cast<std::int64_t>(out.rows));
    return copy_if_plain(result, field.dtype, shape, kSmall, out.columns.front().data);
  }

  [[nodiscard]] Sample call(const Sample& rows) const {
    return with_interpreter([&] { return sample_made(call_rows(fn_.get(), rows)); });
  }

  static constexpr std::size_t kSmall = 64 << 10;

  Callee fn_;
  std::string name_;
  std::optional<ElementSpec> spec_;
  mutable ShortTurn::Cost cost_;
};

}  // namespace

OpCall vector_op(nb::handle fn, const std::string& name, const std::optional<ElementSpec>& spec) {
  return OpCall(std::make_shared<VectorOp>(fn, name, spec));
}

ElementSpec probed_spec(nb::handle fn, const ElementSpec& input) {
  std::vector<Tensor> leaves;
  for (const FieldSpec& field : input.fields) {
    if (!is_dense(field))
      throw ConfigError(
          fmt::format("map_batch: field \"{}\" ({}) has no fixed size", field.path, field.text()),
          {}, "use map(), which receives one sample at a time");
    Shape shape = field.shape;
    shape.insert(shape.begin(), 0);
    leaves.push_back(Tensor::copy(field.dtype, std::move(shape), {}));
  }
  const Sample none = Sample::assemble(input.structure, std::move(leaves));
  return row_spec(sample_of(call_user(fn, arguments_of(none))), 0);
}

void bind_functions(nb::module_& module) {
  module.def("rng", generator);
}

}  // namespace penstock::python
