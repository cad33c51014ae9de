#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <utility>

#include "base/guarded.h"
#include "op/op.h"
#include "penstock/error.h"
#include "sample/rows.h"

namespace penstock {

std::string ColumnFn::signature() const {
  const auto names = [](const std::vector<Dtype>& dtypes) {
    std::vector<std::string_view> words;
    for (const Dtype dtype : dtypes) words.push_back(dtype_name(dtype));
    return fmt::format("({})", fmt::join(words, ", "));
  };
  return fmt::format("{} -> {}", names(inputs), names(outputs));
}

namespace {

std::string titled(const std::string& name) {
  return name.empty() ? "map" : fmt::format("map \"{}\"", name);
}

class ColumnOp final : public Op {
 public:
  ColumnOp(ColumnFn fn, std::string name) : fn_(std::move(fn)), name_(std::move(name)) {}
  [[nodiscard]] std::string word() const override { return "map"; }
  [[nodiscard]] std::string describe() const override {
    return fmt::format("{} {}", titled(name_), fn_.signature());
  }
  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] bool random() const override { return fn_.random; }

  [[nodiscard]] ElementSpec output(const ElementSpec& input) const override {
    if (!input.known) return ElementSpec::unknown();
    if (input.fields.size() != fn_.inputs.size())
      throw ConfigError(
          fmt::format("{}: the function {} takes {} values, the elements are {}", titled(name_),
                      fn_.signature(), fn_.inputs.size(), input.text()),
          {}, "give the function one parameter per field, or take a const Sample&");
    for (std::size_t i = 0; i < input.fields.size(); ++i) {
      const FieldSpec& field = input.fields[i];
      if (field.dtype != fn_.inputs[i] || !is_dense(field))
        throw ConfigError(
            fmt::format("{}: parameter {} of the function {} is {}, field \"{}\" is {} in {}",
                        titled(name_), i, fn_.signature(), dtype_name(fn_.inputs[i]), field.path,
                        field.text(), input.text()),
            {},
            is_dense(field) ? fmt::format("declare the parameter as {}, or cast the field",
                                          dtype_name(field.dtype))
                            : "take a const Sample& instead");
      if (field.shape != input.fields.front().shape)
        throw ConfigError(fmt::format("{}: the function {} needs fields of one shape, not {}",
                                      titled(name_), fn_.signature(), input.text()),
                          {}, "take a const Sample& instead");
    }
    std::vector<ElementSpec> parts;
    for (const Dtype dtype : fn_.outputs)
      parts.push_back(ElementSpec::single(dtype, input.fields.front().shape));
    return fn_.tuple ? ElementSpec::tuple(parts) : parts.front();
  }

  Result<void> run(const BlockView& in, const BlockView& out,
                   const OpContext& context) const override {
    constexpr std::size_t kFieldsMax = 64;
    std::array<const std::byte*, kFieldsMax> inputs{};
    std::array<std::byte*, kFieldsMax> outputs{};
    if (in.columns.size() > kFieldsMax || out.columns.size() > kFieldsMax)
      return Failure{"a typed function has more than 64 fields", {}, {}, nullptr, 0};
    for (std::size_t i = 0; i < in.columns.size(); ++i) inputs[i] = in.columns[i].data;
    for (std::size_t i = 0; i < out.columns.size(); ++i) outputs[i] = out.columns[i].data;
    ColumnFn::Call call;
    call.inputs = {inputs.data(), in.columns.size()};
    call.outputs = {outputs.data(), out.columns.size()};
    call.rows = in.rows;
    call.row_values = in.columns[0].row_bytes / dtype_size(fn_.inputs[0]);
    call.rng = context.rng;
    return guarded([&] { fn_.run(call); }, [&] { return call.failed_row; });
  }

 private:
  ColumnFn fn_;
  std::string name_;
};

class SampleOp final : public Op {
 public:
  SampleOp(SampleFn fn, const MapOptions& options)
      : fn_(std::move(fn)), name_(options.name), spec_(options.spec), row_wise_(options.row_wise) {}
  [[nodiscard]] std::string word() const override { return "map"; }
  [[nodiscard]] std::string describe() const override {
    return fmt::format("{} (Sample) -> Sample", titled(name_));
  }
  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] bool random() const override { return fn_.random; }
  [[nodiscard]] bool row_wise() const override { return row_wise_; }
  [[nodiscard]] bool takes_samples() const override { return true; }
  [[nodiscard]] ElementSpec output(const ElementSpec&) const override {
    return spec_ ? *spec_ : ElementSpec::unknown();
  }

  Result<void> run(const BlockView& in, const BlockView& out,
                   const OpContext& context) const override {
    return run_samples(in, out, context);
  }

  [[nodiscard]] Result<Sample> run_sample(const Sample& in, const OpContext& context,
                                          std::size_t row) const override {
    Sample made;
    auto done = guarded(
        [&] {
          Rng rng = context.rng != nullptr ? (*context.rng)(row) : Rng(0, 0);
          made = fn_.run(in, rng);
        },
        [&] { return row; });
    if (!done) return std::move(done.failure());
    return made;
  }

 private:
  SampleFn fn_;
  std::string name_;
  std::optional<ElementSpec> spec_;
  bool row_wise_;
};

class BlockOp final : public Op {
 public:
  BlockOp(BlockFn fn, const MapOptions& options)
      : fn_(std::move(fn)),
        name_(options.name),
        spec_(*options.spec),
        row_wise_(options.row_wise) {}
  [[nodiscard]] std::string word() const override { return "map"; }
  [[nodiscard]] std::string describe() const override {
    return fmt::format("{} (Block) -> {}", titled(name_), spec_.text());
  }
  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] bool row_wise() const override { return row_wise_; }
  [[nodiscard]] ElementSpec output(const ElementSpec&) const override { return spec_; }

  Result<void> run(const BlockView& in, const BlockView& out, const OpContext&) const override {
    Block to(out);
    auto done = guarded([&] { fn_.run(Block(in), to); }, [] { return std::size_t{0}; });
    if (!done) done.failure().row_known = false;
    return done;
  }

 private:
  BlockFn fn_;
  std::string name_;
  ElementSpec spec_;
  bool row_wise_;
};

}  // namespace

std::shared_ptr<const Op> make_column_op(ColumnFn fn, std::string name) {
  return std::make_shared<ColumnOp>(std::move(fn), std::move(name));
}

std::shared_ptr<const Op> make_sample_op(SampleFn fn, const MapOptions& options) {
  return std::make_shared<SampleOp>(std::move(fn), options);
}

std::shared_ptr<const Op> make_block_op(BlockFn fn, const MapOptions& options) {
  if (!options.spec || !options.spec->known)
    throw ConfigError(
        fmt::format("{}: a block function needs its result declared", titled(options.name)), {},
        "pass {.spec = ElementSpec::single(dtype)} or another spec");
  for (const FieldSpec& field : options.spec->fields)
    if (!is_dense(field))
      throw ConfigError(fmt::format("{}: a block function writes dense fields, \"{}\" is {}",
                                    titled(options.name), field.path, field.text()));
  return std::make_shared<BlockOp>(std::move(fn), options);
}

}  // namespace penstock
