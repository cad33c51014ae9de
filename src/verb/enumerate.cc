// tested in src/verb/zip_test.cc
#include "plan/flow_kinds.h"
#include "sample/rows.h"
#include "verb/catalogue.h"
#include "verb/kinds.h"
#include "verb/zip_stage.h"

namespace penstock {
namespace {

class EnumerateCursor final : public RowCursor {
 public:
  EnumerateCursor(const Flow& input, Turn turn)
      : RowCursor(input.open(turn)), spec_(input.spec()) {}

  Result<std::size_t> pull(const BlockView& out, Pulling& pulling) override {
    auto got = out.samples == nullptr ? columns(out, pulling) : samples(out, pulling);
    if (got) number_ += *got;
    return got;
  }

 private:
  std::span<std::uint64_t> place() override { return {&number_, 1}; }

  Result<std::size_t> columns(const BlockView& out, Pulling& pulling) {
    auto* const numbers = reinterpret_cast<std::uint64_t*>(out.columns[0].data);
    for (std::size_t row = 0; row < out.rows; ++row) numbers[row] = number_ + row;
    BlockView part = out;
    part.spec = &spec_;
    part.columns = out.columns.subspan(1);
    return input_->pull(part, pulling);
  }
  Result<std::size_t> samples(const BlockView& out, Pulling& pulling) {
    auto got = pull_as(*input_, spec_, out, pulling);
    for (std::size_t row = 0; got && row < *got; ++row)
      out.samples[row] = Sample::tuple(
          {Tensor::scalar(static_cast<std::int64_t>(number_ + row)), out.samples[row]});
    return got;
  }

  const ElementSpec& spec_;
  std::uint64_t number_ = 0;
};

class Enumerate final : public OnSamples {
 public:
  [[nodiscard]] Words words() const override { return {"enumerate", "enumerate()"}; }
  [[nodiscard]] Facts facts(const Node&) const override { return {}; }
  void add_order(const Node& node, const Counting& counting,
                 std::vector<std::string>& lines) const override {
    add_order_of_inputs(node, counting, lines);
  }
  void add_values(const Node& node, Digest& digest) const override {
    digest.add(words().line);
    digest.add(node.spec.text());
  }
  [[nodiscard]] Json arguments() const override { return Json::object(); }
  [[nodiscard]] Dataset apply(const Node&, const std::vector<Dataset>& inputs) const override {
    return inputs.front().enumerate();
  }
  [[nodiscard]] StagePtr samples(Compiler& compiler, const Node& node,
                                 std::uint64_t first_id) const override {
    std::vector<StagePtr> input;
    input.push_back(compiler.samples(node.input(), first_id));
    return zip_stage(std::move(input), true, node.spec);
  }
  [[nodiscard]] FlowPtr flow(Compiler& compiler, const Node& node,
                             std::uint64_t first_id) const override {
    return same_rows_over<EnumerateCursor>(compiler.flow(node.input(), first_id), node.spec);
  }
};

}  // namespace

Dataset Dataset::enumerate() const {
  refuse_if_batched(*this, "enumerate",
                    "enumerate() before batch numbers the samples; a batch knows its step()");
  Node node = after(*this, std::make_shared<const Enumerate>());
  node.spec = ElementSpec::tuple({ElementSpec::single(Dtype::i64), element_spec()});
  return make_node(std::move(node));
}

Dataset parse_enumerate(const Parsed& parsed) {
  return parsed.input().enumerate();
}

}  // namespace penstock
