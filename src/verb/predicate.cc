// tested in src/verb/filter_test.cc
#include "verb/predicate.h"

#include <fmt/format.h>

#include <algorithm>

#include "plan/run_stage.h"

namespace penstock {

std::shared_ptr<const Op> Dataset::sample_predicate(SampleFn fn, const std::string& name) {
  MapOptions options;
  options.name = name;
  options.spec = ElementSpec::single(Dtype::boolean);
  return make_sample_op(std::move(fn), options);
}

std::shared_ptr<const Op> Dataset::column_predicate(ColumnFn fn, const std::string& name) {
  if (fn.outputs != std::vector{Dtype::boolean})
    throw ConfigError(fmt::format("a predicate returns bool, this one is {}", fn.signature()));
  return make_column_op(std::move(fn), name);
}

void check_predicate(const Dataset& input, const Op& op, const char* word) {
  if (input.batched())
    throw ConfigError(fmt::format("{}: these elements are batches", word), {},
                      fmt::format("put {} before batch", word));
  const ElementSpec verdict = op.output(input.element_spec());
  if (verdict.known && verdict != ElementSpec::single(Dtype::boolean))
    throw ConfigError(fmt::format("{}: a typed predicate sees single values, the elements are {}",
                                  word, input.element_spec().text()),
                      {}, "take a const Sample& instead");
}

std::string predicate_line(const char* word, const Op& op, std::uint64_t seed) {
  // The op's own line starts with "map".
  std::string line = word + op.describe().substr(std::string("map").size());
  if (op.random()) line += fmt::format(", seed={}", seed);
  return line;
}

StagePtr pulled_predicate(Compiler& compiler, const Flow& input, std::shared_ptr<const Op> op,
                          std::uint64_t seed, const std::string& line) {
  MapPlace place = compiler.place_of(*op, seed, line);
  return map_stage(pulled_stage(input.spec(), input.ids()), std::move(op),
                   ElementSpec::single(Dtype::boolean), std::move(place));
}

Result<void> judge(const Stage& predicate, Turn turn, const BlockView& rows, std::uint8_t* keep,
                   std::uint8_t* failed, Pulling& pulling) {
  static const ElementSpec kVerdict = ElementSpec::single(Dtype::boolean);
  const Scratch::Frame frame(pulling.context.scratch);
  BlockView verdict;
  verdict.rows = rows.rows;
  verdict.spec = &kVerdict;
  const Column column{reinterpret_cast<std::byte*>(keep), 1, nullptr};
  verdict.columns = {&column, 1};
  verdict.identity = {pulling.context.scratch.array<std::uint64_t>(rows.rows),
                      pulling.context.scratch.array<std::uint64_t>(rows.rows)};
  std::fill_n(failed, rows.rows, std::uint8_t{0});
  auto done = run_stage(predicate, {turn, 0, &rows}, verdict, pulling, failed);
  if (!done) return std::move(done.failure());
  for (std::size_t row = 0; row < rows.rows; ++row)
    if (failed[row] != 0) keep[row] = 0;
  return {};
}

}  // namespace penstock
