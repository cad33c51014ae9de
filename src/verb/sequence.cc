// Batches by index: from_sequence.
// tested in src/feed/sequence_test.cc
#include "source/sequence.h"

#include "verb/kinds.h"

namespace penstock {
namespace {

class FromSequence final : public Origin {
 public:
  explicit FromSequence(std::shared_ptr<SequenceSource> source) : source_(std::move(source)) {}
  [[nodiscard]] Words words() const override { return {"from_sequence", source_->title()}; }
  [[nodiscard]] Facts facts(const Node&) const override {
    return {.is_leaf = true, .counts_steps = true};
  }
  [[nodiscard]] Json arguments() const override {
    return {{"name", required_name("from_sequence", name())}};
  }
  [[nodiscard]] std::vector<LeafProgram> chains(Compiler& compiler, const Node& node,
                                                std::uint64_t first_id) const override {
    const SourcePlace place = compiler.next_source(first_id);
    std::vector<LeafProgram> chains;
    chains.push_back(
        {pulled_stage(node.spec, IdSpace{{{first_id, place.ordinal}}}), {}, source_, first_id});
    return chains;
  }
  /// Each batch is one element; its number of rows is known when it arrives.
  [[nodiscard]] Steps steps(const Node& node, StepsWalk& walk) const override {
    return walk.leaf(node, {source_->size(), 1, Tail::short_});
  }
  [[nodiscard]] Promise promise(const Node&, const Delivery&) const override {
    return {{}, 0, false};
  }
  [[nodiscard]] std::uint64_t id_space(const Node&) const override { return kStreamIds; }
  [[nodiscard]] std::string name() const override { return source_->options().name; }

 private:
  const std::shared_ptr<SequenceSource> source_;
};

}  // namespace

Dataset Dataset::from_sequence(std::shared_ptr<Sequence> sequence, const SequenceOptions& options) {
  if (!sequence) throw ConfigError("from_sequence: there is no Sequence");
  auto source = std::make_shared<SequenceSource>(std::move(sequence), options);
  Node node;
  node.spec = options.spec.value_or(ElementSpec::unknown());
  node.size = Cardinality::of(source->size());
  node.batched = true;
  node.verb = std::make_shared<const FromSequence>(std::move(source));
  return make_counted("from_sequence", std::move(node));
}

}  // namespace penstock
