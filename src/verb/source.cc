// Datasets of indexed data: range, from_tensors, from_index, and files.
#include "verb/source.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/cancelled.h"
#include "plan/failures.h"
#include "sample/rows.h"
#include "trace/activity.h"
#include "verb/catalogue.h"
#include "verb/kinds.h"

namespace penstock {
namespace {

class SourceStage final : public Stage {
 public:
  SourceStage(std::shared_ptr<const Source> source, const ElementSpec& spec, SourcePlace place)
      : Stage(spec, IdSpace{{{place.first_id, place.ordinal, source}}}),
        source_(std::move(source)),
        title_(source_->describe()),
        first_id_(place.first_id) {}
  void identify(const Ask& ask, std::uint64_t* ids, const Context&) const override {
    std::ranges::transform(ask.positions, ids, [first = first_id_](std::uint64_t position) {
      return first + position;
    });
  }
  void collect_reads(const Ask& ask, const Context&,
                     std::vector<PlannedRead>& planned) const override {
    if (!source_->has_reads()) return;
    std::vector<Read> reads;
    for (const std::uint64_t number : ask.positions) {
      reads.clear();
      source_->reads(number, reads);
      for (Read& read : reads) planned.push_back({{source_.get(), number}, std::move(read)});
    }
  }

 protected:
  Result<void> run(const Ask& ask, const BlockView& out, const Context& context) const override {
    identify(ask, out.identity.sample_id, context);
    if (out.identity.occurrence != nullptr)
      std::fill_n(out.identity.occurrence, out.rows, ask.turn.occurrence());
    if (out.rows == 0) return {};
    const trace::MeasuredCall call = context.enter(title_, out.identity.sample_id[0], out.rows);
    return for_good_rows(out, ids(), [&](std::size_t first, std::size_t rows) {
      const Scratch::Frame frame(context.scratch);
      const auto numbers = ask.positions.subspan(first, rows);
      const BlockView part = cut_rows(out, first, rows, context.scratch);
      auto done = source_->has_reads() && !source_->reads_in_decode()
                      ? read_rows(numbers, part, context)
                      : source_->decode(numbers, {}, part, context);
      if (!done) done.failure().where.op = title_;
      return done;
    });
  }

 private:
  /// Reads one by one: if a row fails, the rows before it must be complete.
  Result<void> read_rows(std::span<const std::uint64_t> numbers, const BlockView& out,
                         const Context& context) const {
    std::vector<Read> reads;
    std::vector<Bytes> bytes;
    for (std::size_t row = 0; row < out.rows; ++row) {
      if (!context.at_sample(out.identity.sample_id[row])) return cancelled(row);
      const Scratch::Frame frame(context.scratch);
      reads.clear();
      bytes.clear();
      source_->reads(numbers[row], reads);
      Result<void> done;
      for (std::size_t i = 0; i < reads.size() && done; ++i) {
        auto got = context.reader.get(reads[i], {source_.get(), numbers[row]});
        if (got) {
          bytes.push_back(std::move(*got));
        } else {
          done = std::move(got.failure());
        }
      }
      if (done)
        done = source_->decode(numbers.subspan(row, 1), bytes,
                               cut_rows(out, row, 1, context.scratch), context);
      if (!done) {
        done.failure().row = row;
        return done;
      }
    }
    return {};
  }

  std::shared_ptr<const Source> source_;
  std::string title_;
  std::uint64_t first_id_;
};

class FromSource final : public Origin {
 public:
  explicit FromSource(std::shared_ptr<const Source> source) : source_(std::move(source)) {}
  [[nodiscard]] Words words() const override { return {source_->word(), source_->describe()}; }
  void add_order(const Node&, const Counting&, std::vector<std::string>& lines) const override {
    Digest identity;
    source_->identify(identity);
    lines.push_back(fmt::format("{} #{}", source_->word(), identity.text().substr(0, 8)));
  }
  void add_values(const Node& node, Digest& digest) const override {
    Origin::add_values(node, digest);
    source_->identify_values(digest);
  }
  [[nodiscard]] Json arguments() const override {
    Json arguments = source_->arguments();
    if (!arguments.empty()) return arguments;
    if (source_->name().empty())
      throw ConfigError(
          fmt::format("{}: data in memory is serialized by name", source_->describe()), {},
          "give it one: {.name = ...}");
    return {{"name", source_->name()}};
  }
  [[nodiscard]] StagePtr samples(Compiler& compiler, const Node& node,
                                 std::uint64_t first_id) const override {
    if (const std::string notes = source_->notes(); !notes.empty())
      compiler.note(fmt::format("{}: {}", source_->describe(), notes));
    if (compiler.random_order())
      if (auto warning = source_->random_order_warning()) compiler.warn(std::move(*warning));
    return source_stage(source_, node.spec, compiler.next_source(first_id));
  }
  [[nodiscard]] Promise promise(const Node&, const Delivery&) const override {
    return {{{source_->size(), 1}}};
  }
  [[nodiscard]] std::uint64_t id_space(const Node&) const override { return source_->size(); }
  [[nodiscard]] std::string name() const override { return source_->name(); }
  [[nodiscard]] std::vector<std::string> class_names() const override {
    return source_->class_names();
  }

 private:
  const std::shared_ptr<const Source> source_;
};

}  // namespace

StagePtr source_stage(std::shared_ptr<const Source> source, const ElementSpec& spec,
                      const SourcePlace& place) {
  return std::make_unique<SourceStage>(std::move(source), spec, place);
}

Dataset from_source(std::shared_ptr<const Source> source, const SourceOptions& options) {
  // A spec can be declared for a function; the spec of an array is known.
  if (options.spec && source->spec().known && *options.spec != source->spec())
    throw ConfigError(fmt::format("{}: the data is {}, declared as {}", source->word(),
                                  source->spec().text(), options.spec->text()));
  Node node;
  node.spec = options.spec ? *options.spec : source->spec();
  node.size = Cardinality::of(source->size());
  const std::string word = source->word();
  node.verb = std::make_shared<const FromSource>(std::move(source));
  return make_counted(word, std::move(node));
}

Dataset Dataset::range(std::int64_t start, std::int64_t stop, std::int64_t step) {
  return from_source(make_range(start, stop, step), {});
}

Dataset Dataset::from_tensors(Sample sample, const SourceOptions& options) {
  return from_source(make_tensors(std::move(sample), options.name), options);
}

Dataset Dataset::from_tensor_slices(Sample tensors, const SourceOptions& options) {
  return from_source(make_tensor_slices(std::move(tensors), options.name), options);
}

Dataset Dataset::from_index_fn(std::uint64_t size, IndexFn fn, const SourceOptions& options) {
  if (options.spec) fn.spec = *options.spec;
  return from_source(make_index(size, std::move(fn), options.name), options);
}

Dataset parse_range(const Parsed& parsed) {
  return Dataset::range(parsed.number("start"), parsed.number("stop"), parsed.number("step"));
}

}  // namespace penstock
