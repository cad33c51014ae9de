// A stream from a user's function: from_generator.
// tested in src/plan/flows_test.cc
#include <fmt/format.h>

#include <algorithm>

#include "base/cancelled.h"
#include "base/guarded.h"
#include "plan/run_stage.h"
#include "sample/rows.h"
#include "trace/activity.h"
#include "verb/kinds.h"

namespace penstock {
namespace {

class GeneratorFlow final : public Flow {
 public:
  GeneratorFlow(GeneratorFn fn, const ElementSpec& spec, SourcePlace place, std::string title)
      : Flow(spec, IdSpace{{{place.first_id, place.ordinal}}}),
        fn_(std::move(fn)),
        title_(std::move(title)),
        first_id_(place.first_id) {}
  [[nodiscard]] CursorPtr open(Turn turn) const override;

 private:
  friend class GeneratorCursor;
  const GeneratorFn fn_;
  const std::string title_;
  const std::uint64_t first_id_;
};

class GeneratorCursor final : public Cursor {
 public:
  GeneratorCursor(const GeneratorFlow& flow, Turn turn) : flow_(flow), turn_(turn) {}

  Result<std::size_t> pull(const BlockView& out, Pulling& pulling) override {
    if (ended_) return std::size_t{0};
    for (std::size_t row = 0; row < out.rows; ++row)
      out.identity.sample_id[row] = flow_.first_id_ + pulled_ + row;
    std::fill_n(out.identity.occurrence, out.rows, turn_.round);
    const trace::MeasuredCall call =
        pulling.context.enter(flow_.title_, flow_.first_id_ + pulled_, out.rows);
    GeneratorRun::Pull pull;
    std::vector<std::byte*> columns;
    for (const Column& column : out.columns) columns.push_back(column.data);
    pull.columns = columns;
    pull.rows = out.rows;
    bool wanted = true;
    pull.wanted = [&](std::size_t row) {
      return wanted = pulling.context.at_sample(flow_.first_id_ + pulled_ + row);
    };
    std::optional<std::string> wrong;
    pull.put = [&](std::size_t row, const Sample& sample) {
      if (!wrong) wrong = write_row(out, row, sample);
      if (wrong) throw wrong;  // NOLINT: ours, caught below
    };
    auto done = guarded(
        [&] {
          try {
            if (!run_) run_ = flow_.fn_.open({turn_.pass, turn_.round});
            run_->pull(pull);
            // NOLINTNEXTLINE(bugprone-empty-catch): reported by `wrong`
          } catch (const std::optional<std::string>&) {
          }
        },
        [&] { return pull.made; });
    if (!done || wrong || !wanted) return failure(std::move(done), wrong, wanted, pull.made, out);
    pulled_ += pull.made;
    ended_ = pull.ended;
    return pull.made;
  }

  void save(Anchor& anchor) override {
    anchor.numbers.push_back(pulled_);
    anchor.numbers.push_back(ended_ ? 1 : 0);
    if (flow_.fn_.has_cursor) anchor.texts.push_back(run_ && !ended_ ? run_->save() : "");
  }

  Result<void> restore(AnchorReader& anchor, Pulling& pulling) override {
    const std::uint64_t pulled = anchor.number();
    const bool ended = anchor.number() != 0;
    const std::string text = flow_.fn_.has_cursor ? anchor.text() : "";
    if (pulled == 0 && !ended) return {};
    if (ended || flow_.fn_.has_cursor) {
      auto done = guarded(
          [&] {
            if (ended) return;
            run_ = flow_.fn_.open({turn_.pass, turn_.round});
            run_->restore(text);
          },
          [] { return std::size_t{0}; });
      if (!done) {
        done.failure().where.op = flow_.title_;
        return done;
      }
      pulled_ = pulled;
      ended_ = ended;
      return {};
    }
    auto skipped = skip_rows(*this, flow_.spec(), pulled, pulling);
    if (!skipped) return std::move(skipped.failure());
    if (*skipped == pulled) return {};
    Failure failure{fmt::format("the generator yielded {} elements, the state was saved after {}",
                                *skipped, pulled)};
    failure.where.op = flow_.title_;
    failure.remedy = "a generator must yield the same elements each time it is started";
    return failure;
  }

 private:
  Failure failure(Result<void> done, const std::optional<std::string>& wrong, bool wanted,
                  std::size_t row, const BlockView& out) const {
    if (!wanted) return cancelled(row);
    Failure failure =
        wrong ? Failure{*wrong, {}, "every element must have the declared fields", nullptr, row}
              : std::move(done.failure());
    failure.where.op = flow_.title_;
    failure.make_permanent();  // a generator that threw cannot be resumed
    return at_sample(std::move(failure), flow_.ids(), out);
  }

  const GeneratorFlow& flow_;
  const Turn turn_;
  std::unique_ptr<GeneratorRun> run_;
  std::uint64_t pulled_ = 0;
  bool ended_ = false;
};

CursorPtr GeneratorFlow::open(Turn turn) const {
  return std::make_unique<GeneratorCursor>(*this, turn);
}

class FromGenerator final : public Origin {
 public:
  FromGenerator(GeneratorFn fn, std::string name) : fn_(std::move(fn)), name_(std::move(name)) {}
  [[nodiscard]] Words words() const override {
    return {"from_generator",
            fmt::format("from_generator({}{})", name_.empty() ? "" : fmt::format("\"{}\", ", name_),
                        fn_.has_cursor ? "with cursor" : "replayed from its start")};
  }
  [[nodiscard]] Json arguments() const override {
    return {{"name", required_name("from_generator", name_)}};
  }
  [[nodiscard]] FlowPtr flow(Compiler& compiler, const Node& node,
                             std::uint64_t first_id) const override {
    if (!fn_.has_cursor)
      compiler.note(
          fmt::format("{}: resuming pulls it again from the start of the pass; save() "
                      "and restore() avoid that",
                      words().line));
    return std::make_unique<GeneratorFlow>(fn_, node.spec, compiler.next_source(first_id),
                                           words().line);
  }
  [[nodiscard]] Promise promise(const Node&, const Delivery&) const override {
    return {{}, 0, false};
  }
  [[nodiscard]] std::uint64_t id_space(const Node&) const override { return kStreamIds; }
  [[nodiscard]] std::string name() const override { return name_; }

 private:
  const GeneratorFn fn_;
  const std::string name_;
};

}  // namespace

Dataset Dataset::from_generator_fn(GeneratorFn fn, const SourceOptions& options) {
  if (options.spec && fn.spec.known && *options.spec != fn.spec)
    throw ConfigError(fmt::format("from_generator: its elements are {}, declared as {}",
                                  fn.spec.text(), options.spec->text()));
  Node node;
  node.spec = options.spec ? *options.spec : fn.spec;
  node.size = Cardinality::unknown();
  node.stream = true;
  node.verb = std::make_shared<const FromGenerator>(std::move(fn), options.name);
  return make_node(std::move(node));
}

}  // namespace penstock
