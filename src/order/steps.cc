#include "order/steps.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace penstock {
namespace {

std::uint64_t times(std::uint64_t count, std::uint64_t rounds) {
  if (count == 0 || rounds == 0) return 0;
  if (count == kEndless || rounds == kEndless) return kEndless;
  if (count == kUncounted) return kUncounted;
  std::uint64_t product = 0;
  return __builtin_mul_overflow(count, rounds, &product) ? kEndless : product;
}

std::uint64_t plus(std::uint64_t left, std::uint64_t right) {
  if (left == kEndless || right == kEndless) return kEndless;
  return left == kUncounted || right == kUncounted ? kUncounted : left + right;
}

}  // namespace

std::uint64_t Groups::steps() const {
  if (count == kEndless) return kEndless;
  return count / batch + (tail != Tail::drop && count % batch != 0 ? 1 : 0);
}

std::uint64_t Groups::first(std::uint64_t step) const {
  if (tail != Tail::even || divides()) return step * batch;
  return step * (count / steps()) + std::min(step, count % steps());
}

std::uint64_t Groups::size(std::uint64_t step) const {
  if (count == kEndless || tail == Tail::wrap) return batch;
  if (tail == Tail::even) return first(step + 1) - first(step);
  return std::min(batch, count - first(step));
}

std::uint64_t Groups::step_of(std::uint64_t row) const {
  if (tail != Tail::even || divides()) return row / batch;
  // The first steps have one sample more than the others.
  const std::uint64_t small = count / steps();
  const std::uint64_t larger = count % steps();
  const std::uint64_t in_larger = larger * (small + 1);
  return row < in_larger ? row / (small + 1) : larger + (row - in_larger) / small;
}

std::uint64_t Groups::delivered() const {
  const bool filled = tail == Tail::drop || tail == Tail::wrap;
  return count == kEndless || !filled ? count : steps() * batch;
}

std::uint64_t Groups::fewest(std::uint64_t among) const {
  among = std::min(among, steps());
  if (among == 0 || tail == Tail::pad) return kEndless;
  return among == kEndless ? batch : size(among - 1);
}

/// One level of the tree. A part computes its own level and delegates the rest to its children.
struct Steps::Part {
  enum class Kind : std::uint8_t { leaf, repeat, slice, shard, shuffle, concatenate };
  Kind kind = Kind::leaf;
  std::vector<Steps> inputs;
  std::uint32_t leaf = 0;
  Groups groups;
  std::uint64_t first = 0;  // slice: first step; shard: index; repeat: rounds
  StepShuffle order;
  std::uint64_t stride = 1;  // shard: count
  std::uint64_t count = 0;
  std::uint64_t rows = 0;
  std::uint64_t span = 0;
  bool in_order = true;
  // For a concatenate: steps and samples up to the end of each input.
  std::vector<std::uint64_t> step_ends;
  std::vector<std::uint64_t> row_ends;
};

Steps Steps::leaf(std::uint32_t leaf, Groups groups) {
  auto part = std::make_shared<Part>();
  part->leaf = leaf;
  part->groups = groups;
  part->count = groups.steps();
  part->rows = groups.delivered();
  part->span = groups.count;
  return Steps(std::move(part));
}

Steps Steps::repeated(std::uint64_t rounds) const {
  auto part = std::make_shared<Part>();
  part->kind = Part::Kind::repeat;
  part->inputs = {*this};
  part->first = rounds;
  part->count = times(count(), rounds);
  part->rows = times(rows(), rounds);
  part->span = times(span(), rounds);
  part->in_order = in_order();
  return Steps(std::move(part));
}

Steps Steps::sliced(std::uint64_t first, std::uint64_t wanted) const {
  auto part = std::make_shared<Part>();
  part->kind = Part::Kind::slice;
  part->inputs = {*this};
  part->first = std::min(first, count());
  const std::uint64_t left = count() == kEndless ? kEndless : count() - part->first;
  part->count = std::min(left, wanted);
  part->in_order = in_order();
  if (part->in_order && part->count != kEndless) {
    part->rows = rows_before(part->first + part->count) - rows_before(part->first);
  } else {
    part->rows = part->count == 0 ? 0 : part->count == kEndless ? kEndless : kUncounted;
  }
  part->span = part->rows;
  return Steps(std::move(part));
}

Steps Steps::sharded(std::uint64_t shards, std::uint64_t index) const {
  auto part = std::make_shared<Part>();
  part->kind = Part::Kind::shard;
  part->inputs = {*this};
  part->first = index;
  part->stride = shards;
  part->count = count() == kEndless ? kEndless
                : count() > index   ? (count() - index - 1) / shards + 1
                                    : 0;
  part->rows = part->count == 0 ? 0 : part->count == kEndless ? kEndless : kUncounted;
  part->span = part->rows;
  part->in_order = false;
  return Steps(std::move(part));
}

Steps Steps::shuffled(StepShuffle shuffle) const {
  auto part = std::make_shared<Part>();
  part->kind = Part::Kind::shuffle;
  part->inputs = {*this};
  part->order = shuffle;
  part->count = count();
  part->rows = rows();
  part->span = span();
  part->in_order = false;
  return Steps(std::move(part));
}

Steps Steps::concatenated(std::vector<Steps> parts) {
  PENSTOCK_CHECK(!parts.empty());
  auto part = std::make_shared<Part>();
  part->kind = Part::Kind::concatenate;
  for (const Steps& input : parts) {
    part->count = plus(part->count, input.count());
    part->rows = plus(part->rows, input.rows());
    part->span = plus(part->span, input.span());
    part->in_order = part->in_order && input.in_order();
    part->step_ends.push_back(part->count);
    part->row_ends.push_back(part->rows);
  }
  part->inputs = std::move(parts);
  return Steps(std::move(part));
}

std::size_t Steps::part_at(const std::vector<std::uint64_t>& ends, std::uint64_t number) const {
  const auto found = std::ranges::upper_bound(ends, number);
  return std::min<std::size_t>(static_cast<std::size_t>(found - ends.begin()),
                               part_->inputs.size() - 1);
}

std::uint64_t Steps::count() const {
  return part_->count;
}
std::uint64_t Steps::rows() const {
  return part_->rows;
}
std::uint64_t Steps::span() const {
  return part_->span;
}
bool Steps::in_order() const {
  return part_->in_order;
}

Place Steps::step(Turn turn, std::uint64_t step) const {
  const Part& part = *part_;
  PENSTOCK_CHECK_LT(step, part.count);
  switch (part.kind) {
    case Part::Kind::leaf:
      return {part.leaf,
              turn,
              part.groups.first(step),
              part.groups.size(step),
              part.groups.period(),
              part.groups.padded_to()};
    case Part::Kind::repeat: {
      const std::uint64_t rounds = part.first == kEndless ? kEndlessRounds : part.first;
      const std::uint64_t each = part.inputs[0].count();
      const std::uint64_t round = each == kEndless ? 0 : step / each;
      return part.inputs[0].step({turn.pass, nested_round(turn.round, rounds, round), turn.lap},
                                 step - round * each);
    }
    case Part::Kind::slice:
      return part.inputs[0].step(turn, part.first + step);
    case Part::Kind::shard:
      return part.inputs[0].step(turn, part.first + step * part.stride);
    case Part::Kind::shuffle: {
      const Turn key = part.order.reshuffle ? turn : Turn{};
      const Permutation order(part.count, {part.order.seed, key.pass, key.round});
      return part.inputs[0].step(turn, order(step));
    }
    case Part::Kind::concatenate: {
      const std::size_t at = part_at(part.step_ends, step);
      return part.inputs[at].step(turn, at == 0 ? step : step - part.step_ends[at - 1]);
    }
  }
  throw InternalError("a kind of step node without an answer");
}

Place Steps::row_of(const Part& leaf, Turn turn, std::uint64_t row) {
  const Groups& groups = leaf.groups;
  const std::uint64_t period = groups.period();
  std::uint64_t left = groups.delivered() - row;
  if (period == 0) return {leaf.leaf, turn, row, left, 0, groups.padded_to()};
  const std::uint64_t laps = (groups.delivered() + period - 1) / period;
  turn.lap = turn.lap * laps + row / period;
  left = std::min(left, period - row % period);
  return {leaf.leaf, turn, row % period, left, period};
}

Place Steps::row(Turn turn, std::uint64_t row) const {
  const Part& part = *part_;
  PENSTOCK_CHECK(part.in_order);
  PENSTOCK_CHECK_LT(row, part.rows);
  switch (part.kind) {
    case Part::Kind::leaf:
      return row_of(part, turn, row);
    case Part::Kind::repeat: {
      const std::uint64_t rounds = part.first == kEndless ? kEndlessRounds : part.first;
      const std::uint64_t each = part.inputs[0].rows();
      const std::uint64_t round = each == kEndless ? 0 : row / each;
      return part.inputs[0].row({turn.pass, nested_round(turn.round, rounds, round), turn.lap},
                                row - round * each);
    }
    case Part::Kind::slice: {
      Place place = part.inputs[0].row(turn, part.inputs[0].rows_before(part.first) + row);
      place.count = std::min(place.count, part.rows - row);
      return place;
    }
    case Part::Kind::concatenate: {
      const std::size_t at = part_at(part.row_ends, row);
      return part.inputs[at].row(turn, at == 0 ? row : row - part.row_ends[at - 1]);
    }
    default:
      throw InternalError("rows by number of steps that are not in order");
  }
}

std::uint64_t Steps::rows_before(std::uint64_t step) const {
  const Part& part = *part_;
  PENSTOCK_CHECK(part.in_order);
  switch (part.kind) {
    case Part::Kind::leaf:
      return std::min(part.groups.first(step), part.groups.delivered());
    case Part::Kind::repeat: {
      const std::uint64_t each = part.inputs[0].count();
      if (each == 0) return 0;
      const std::uint64_t round = each == kEndless ? 0 : step / each;
      const std::uint64_t whole = round == 0 ? 0 : round * part.inputs[0].rows();
      return whole + part.inputs[0].rows_before(step - round * each);
    }
    case Part::Kind::slice:
      return part.inputs[0].rows_before(part.first + step) - part.inputs[0].rows_before(part.first);
    case Part::Kind::concatenate: {
      const std::size_t at = part_at(part.step_ends, step);
      if (at == 0) return part.inputs[0].rows_before(step);
      return part.row_ends[at - 1] + part.inputs[at].rows_before(step - part.step_ends[at - 1]);
    }
    default:
      throw InternalError("rows before a step of steps that are not in order");
  }
}

template <typename Visit>
void Steps::for_each_leaf(std::uint64_t first, std::uint64_t last, Visit visit) const {
  const Part& part = *part_;
  last = std::min(last, part.count);
  if (first >= last) return;
  const auto end = [last](std::uint64_t moved) { return last == kEndless ? kEndless : moved; };
  switch (part.kind) {
    case Part::Kind::leaf:
      return visit(part, first, last);
    case Part::Kind::repeat: {
      const std::uint64_t each = part.inputs[0].count();
      const std::uint64_t before = each == kEndless ? 0 : first / each * each;
      const std::uint64_t until = end(last - before);
      part.inputs[0].for_each_leaf(first - before, std::min(until, each), visit);
      if (until > each) part.inputs[0].for_each_leaf(0, std::min(end(until - each), each), visit);
      return;
    }
    case Part::Kind::slice:
      return part.inputs[0].for_each_leaf(part.first + first, end(part.first + last), visit);
    case Part::Kind::shard:
      return part.inputs[0].for_each_leaf(part.first + first * part.stride,
                                          end(part.first + (last - 1) * part.stride + 1), visit);
    case Part::Kind::shuffle:  // which steps these are depends on the pass
      return part.inputs[0].for_each_leaf(0, kEndless, visit);
    case Part::Kind::concatenate: {
      std::uint64_t before = 0;
      for (std::size_t i = 0; i < part.inputs.size() && before < last; ++i) {
        const std::uint64_t until = std::min(last, part.step_ends[i]);
        part.inputs[i].for_each_leaf(first - std::min(first, before), end(until - before), visit);
        before = part.step_ends[i];
      }
      return;
    }
  }
}

std::optional<std::uint32_t> Steps::short_leaf(std::uint64_t first, std::uint64_t last) const {
  std::optional<std::uint32_t> found;
  for_each_leaf(first, last, [&found](const Part& leaf, std::uint64_t, std::uint64_t until) {
    const Groups& groups = leaf.groups;
    if (!found && groups.tail == Tail::strict && !groups.divides() && until == leaf.count)
      found = leaf.leaf;
  });
  return found;
}

std::vector<Steps::SmallLeaf> Steps::leaves_below(std::uint64_t samples) const {
  std::vector<SmallLeaf> small;
  for_each_leaf(0, kEndless, [&](const Part& leaf, std::uint64_t, std::uint64_t until) {
    const std::uint64_t fewest = leaf.groups.fewest(until);
    if (fewest < samples) small.push_back({leaf.leaf, fewest});
  });
  return small;
}

std::optional<Steps::Single> Steps::single() const {
  const Part& part = *part_;
  if (part.kind == Part::Kind::leaf) return Single{part.leaf, part.groups, 1};
  if (part.kind != Part::Kind::repeat) return std::nullopt;
  auto inner = part.inputs[0].single();
  if (inner) inner->rounds = times(inner->rounds, part.first);
  return inner;
}

}  // namespace penstock
