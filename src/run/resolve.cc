// Work that is required before planning: which samples a select, a split or a bucket contains, the
// lengths of documents to pack, and the rows of streams that are cached.
// tested in src/feed/select_test.cc
#include <fmt/format.h>

#include <functional>
#include <span>
#include <utility>

#include "base/digest.h"
#include "graph/node.h"
#include "op/op.h"
#include "order/split.h"
#include "plan/program.h"
#include "plan/stages.h"
#include "run/search.h"
#include "run/store_rows.h"
#include "verb/lengths.h"
#include "verb/needs_rows.h"
#include "verb/row_lengths.h"
#include "verb/select.h"

namespace penstock {
namespace {

/// A select is computed on its input as a separate dataset, wherever it is used.
std::uint64_t random_ops(const Node& node) {
  std::uint64_t count = 0;
  for (const NodePtr& input : node.inputs) count += random_ops(*input);
  const std::shared_ptr<const Op> op = node.verb->op();
  return count + (op && op->random() ? 1 : 0);
}

std::shared_ptr<const Lengths> count_lengths(const Dataset& input, const LengthRule& rule,
                                             const std::function<void()>& while_waiting) {
  const std::uint64_t size = input.cardinality().count();
  auto lengths = std::make_shared<Lengths>();
  lengths->of.resize(size);
  const auto visit = [lengths, rule](std::span<const std::uint64_t> numbers,
                                     const BlockView& rows) -> Result<void> {
    const RowLengths found(rows, rule);
    for (std::size_t row = 0; row < rows.rows; ++row) {
      auto length = found[row];
      if (!length) return std::move(length.failure());
      lengths->of[numbers[row]] = *length;
    }
    return {};
  };
  search(measured_stage(compile_samples(*input.node(), {}), rule, random_ops(*input.node())),
         {"lengths", size, visit}, while_waiting);
  Digest digest;
  digest.add({reinterpret_cast<const char*>(lengths->of.data()),
              lengths->of.size() * sizeof(std::uint32_t)});
  lengths->digest = digest.text();
  return lengths;
}

std::shared_ptr<const Chosen> find_bucket(const Dataset& input, const LengthRange& range,
                                          const std::function<void()>& while_waiting) {
  const auto lengths =
      range.lengths->get([&] { return count_lengths(input, range.rule, while_waiting); });
  const std::uint64_t size = lengths->of.size();
  std::vector<std::uint64_t> words((size + 63) / 64, 0);
  for (std::uint64_t i = 0; i < size; ++i) {
    const std::uint64_t length = lengths->of[i];
    if (length >= range.refused)
      throw ConfigError(
          fmt::format("bucket_by_length: sample {} has length {}, the last boundary is {}", i,
                      length, range.refused),
          {}, "add a boundary above it, or cut long samples before");
    if (length >= range.low && length < range.high) words[i / 64] |= 1ULL << (i % 64);
  }
  return std::make_shared<Chosen>(size, std::move(words));
}

std::shared_ptr<const Chosen> find(const Dataset& input, const Selection& selection,
                                   const std::function<void()>& while_waiting) {
  const std::uint64_t size = input.cardinality().count();
  if (selection.range) return find_bucket(input, *selection.range, while_waiting);
  if (!selection.op) return choose_part(size, {selection.fraction, selection.seed, selection.rest});
  StagePtr samples = compile_samples(*input.node(), {});
  const std::string title = fmt::format("select{}", selection.op->describe().substr(3));
  // Each thread writes separate words. Shared: a thread that is abandoned may still write.
  const auto words = std::make_shared<std::vector<std::uint64_t>>((size + 63) / 64, 0);
  const auto visit = [words](std::span<const std::uint64_t> numbers,
                             const BlockView& verdict) -> Result<void> {
    const auto* const keep = reinterpret_cast<const std::uint8_t*>(verdict.columns[0].data);
    for (std::uint64_t i = 0; i < verdict.rows; ++i)
      if (keep[i] != 0) (*words)[numbers[i] / 64] |= 1ULL << (numbers[i] % 64);
    return {};
  };
  search(map_stage(std::move(samples), selection.op, ElementSpec::single(Dtype::boolean),
                   {title, selection.seed, random_ops(*input.node())}),
         {"select", size, visit}, while_waiting);
  return std::make_shared<Chosen>(size, std::move(*words));
}

}  // namespace

Dataset Dataset::resolve(const std::function<void()>& while_waiting) const {
  if (!is_unresolved(*node_)) return *this;
  std::vector<Dataset> inputs;
  for (const NodePtr& input : node_->inputs)
    inputs.push_back(Dataset(input).resolve(while_waiting));
  const auto* const needs = dynamic_cast<const NeedsLengths*>(node_->verb.get());
  if (needs != nullptr && node_->facts().unresolved)
    return needs->with_lengths(*node_, inputs.front(), needs->length_cell()->get([&] {
      return count_lengths(inputs.front(), needs->length_rule(), while_waiting);
    }));
  const auto* const rows = dynamic_cast<const NeedsRows*>(node_->verb.get());
  if (rows != nullptr && node_->facts().unresolved)
    return rows->with_rows(inputs.front(), rows->rows_cell()->get([&] {
      return store_stream(inputs.front(), rows->rows_target(), while_waiting);
    }));
  const auto* select = node_->as<Select>();
  if (select == nullptr || select->selection().chosen) return node_->verb->apply(*node_, inputs);
  Selection resolved = select->selection();
  resolved.chosen =
      resolved.cell->get([&] { return find(inputs.front(), resolved, while_waiting); });
  return add_select(inputs.front(), std::move(resolved));
}

}  // namespace penstock
