// Stages that decide which rows: slices, shards, shuffles, repeats, concatenation, zip, unbatch.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "order/permutation.h"
#include "plan/stages.h"
#include "sample/rows.h"

namespace penstock {
namespace {

/// Where one position goes: which input, in which turn, at which position there.
struct Target {
  std::size_t input = 0;
  Turn turn;
  std::uint64_t position = 0;
};
bool together(const Target& a, const Target& b) {
  return a.input == b.input && a.turn.round == b.turn.round && a.turn.lap == b.turn.lap;
}

/// Asks each input for its run of consecutive rows, straight into their place in `out`.
template <typename Route>
Result<void> by_runs(const Ask& ask, const BlockView& out, Scratch& scratch,
                     const std::vector<StagePtr>& inputs, Route route) {
  const Scratch::Frame frame(scratch);
  std::uint64_t* const positions = scratch.array<std::uint64_t>(out.rows);
  for (std::size_t first = 0; first < out.rows;) {
    const Target target = route(ask.positions[first]);
    std::size_t last = first;
    Target next = target;
    do {
      positions[last++] = next.position;
      if (last < out.rows) next = route(ask.positions[last]);
    } while (last < out.rows && together(next, target));
    const Scratch::Frame run_frame(scratch);
    const BlockView part = cut_rows(out, first, last - first, scratch);
    auto done = inputs[target.input]->produce({target.turn, {positions + first, last - first}},
                                              part, scratch);
    if (!done) {
      done.failure().row += first;
      return done;
    }
    first = last;
  }
  return {};
}

class StrideStage final : public Stage {
 public:
  StrideStage(StagePtr input, std::uint64_t first, std::uint64_t stride)
      : Stage(input->spec(), input->ids()),
        input_(std::move(input)),
        first_(first),
        stride_(stride) {}

 protected:
  Result<void> run(const Ask& ask, const BlockView& out, Scratch& scratch) const override {
    if (first_ == 0 && stride_ == 1) return input_->produce(ask, out, scratch);
    const Scratch::Frame frame(scratch);
    std::uint64_t* const positions = scratch.array<std::uint64_t>(out.rows);
    for (std::size_t i = 0; i < out.rows; ++i) positions[i] = first_ + stride_ * ask.positions[i];
    return input_->produce({ask.turn, {positions, out.rows}}, out, scratch);
  }

 private:
  StagePtr input_;
  std::uint64_t first_;
  std::uint64_t stride_;
};

class ShuffleStage final : public Stage {
 public:
  ShuffleStage(StagePtr input, std::uint64_t size, StepShuffle order)
      : Stage(input->spec(), input->ids()), input_(std::move(input)), size_(size), order_(order) {}

 protected:
  Result<void> run(const Ask& ask, const BlockView& out, Scratch& scratch) const override {
    const Scratch::Frame frame(scratch);
    std::uint64_t* const positions = scratch.array<std::uint64_t>(out.rows);
    std::ranges::copy(ask.positions, positions);
    const Turn key = order_.reshuffle ? ask.turn : Turn{};
    Permutation(size_, {order_.seed, key.pass, key.round}).apply({positions, out.rows});
    return input_->produce({ask.turn, {positions, out.rows}}, out, scratch);
  }

 private:
  StagePtr input_;
  std::uint64_t size_;
  StepShuffle order_;
};

class RepeatStage final : public Stage {
 public:
  RepeatStage(StagePtr input, std::uint64_t size, std::uint64_t rounds)
      : Stage(input->spec(), input->ids()), size_(size), rounds_(rounds) {
    inputs_.push_back(std::move(input));
  }

 protected:
  Result<void> run(const Ask& ask, const BlockView& out, Scratch& scratch) const override {
    return by_runs(ask, out, scratch, inputs_, [&](std::uint64_t position) {
      const std::uint64_t round = position / size_;
      return Target{0,
                    {ask.turn.pass, ask.turn.round * rounds_ + round, ask.turn.lap},
                    position - round * size_};
    });
  }

 private:
  std::vector<StagePtr> inputs_;
  std::uint64_t size_;
  std::uint64_t rounds_;
};

IdSpace joined(const IdSpace& left, const IdSpace& right) {
  IdSpace ids = left;
  ids.parts.insert(ids.parts.end(), right.parts.begin(), right.parts.end());
  return ids;
}

class ConcatenateStage final : public Stage {
 public:
  ConcatenateStage(StagePtr left, std::uint64_t left_size, StagePtr right, const ElementSpec& spec)
      : Stage(spec, joined(left->ids(), right->ids())), left_size_(left_size) {
    inputs_.push_back(std::move(left));
    inputs_.push_back(std::move(right));
  }

 protected:
  Result<void> run(const Ask& ask, const BlockView& out, Scratch& scratch) const override {
    return by_runs(ask, out, scratch, inputs_, [&](std::uint64_t position) {
      return position < left_size_ ? Target{0, ask.turn, position}
                                   : Target{1, ask.turn, position - left_size_};
    });
  }

 private:
  std::vector<StagePtr> inputs_;
  std::uint64_t left_size_;
};

class UnbatchStage final : public Stage {
 public:
  UnbatchStage(std::vector<StagePtr> leaves, Steps steps, const ElementSpec& spec, IdSpace ids)
      : Stage(spec, std::move(ids)), inputs_(std::move(leaves)), steps_(std::move(steps)) {}

 protected:
  Result<void> run(const Ask& ask, const BlockView& out, Scratch& scratch) const override {
    return by_runs(ask, out, scratch, inputs_, [&](std::uint64_t position) {
      const Place place = steps_.row(ask.turn, position);
      return Target{place.leaf, place.turn, place.first};
    });
  }

 private:
  std::vector<StagePtr> inputs_;
  Steps steps_;
};

/// Tuples of its parts; with `numbered` the first part is the position itself.
class ZipStage final : public Stage {
 public:
  ZipStage(std::vector<StagePtr> parts, bool numbered, const ElementSpec& spec)
      : Stage(spec, parts.front()->ids()), parts_(std::move(parts)), numbered_(numbered) {}

 protected:
  Result<void> run(const Ask& ask, const BlockView& out, Scratch& scratch) const override {
    const Scratch::Frame frame(scratch);
    return spec().known ? run_columns(ask, out, scratch) : run_samples(ask, out, scratch);
  }

 private:
  /// The first part says who the rows are; the others need an identity only for themselves.
  static Identity identity_for(std::size_t part, const BlockView& out, Scratch& scratch) {
    if (part == 0) return out.identity;
    return {scratch.array<std::uint64_t>(out.rows), scratch.array<std::uint64_t>(out.rows),
            out.identity.failed, out.identity.failures};
  }

  Result<void> run_columns(const Ask& ask, const BlockView& out, Scratch& scratch) const {
    std::size_t column = 0;
    if (numbered_) {
      auto* const numbers = reinterpret_cast<std::uint64_t*>(out.columns[column++].data);
      std::ranges::copy(ask.positions, numbers);
    }
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      BlockView part;
      part.rows = out.rows;
      part.spec = &parts_[i]->spec();
      part.columns = out.columns.subspan(column, part.spec->fields.size());
      part.identity = identity_for(i, out, scratch);
      if (auto done = parts_[i]->produce(ask, part, scratch); !done) return done;
      column += part.spec->fields.size();
    }
    return {};
  }

  Result<void> run_samples(const Ask& ask, const BlockView& out, Scratch& scratch) const {
    std::vector<std::unique_ptr<ScratchBlock>> blocks;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      blocks.push_back(std::make_unique<ScratchBlock>(parts_[i]->spec(), out.rows, scratch,
                                                      identity_for(i, out, scratch)));
      if (auto done = parts_[i]->produce(ask, blocks.back()->view(), scratch); !done) return done;
    }
    for (std::size_t row = 0; row < out.rows; ++row) {
      if (out.identity.failed != nullptr && out.identity.failed[row] != 0) continue;
      std::vector<Sample> tuple;
      if (numbered_)
        tuple.emplace_back(Tensor::scalar(static_cast<std::int64_t>(ask.positions[row])));
      for (const auto& block : blocks) tuple.push_back(read_row(block->view(), row));
      if (const auto wrong = write_row(out, row, Sample::tuple(std::move(tuple))))
        return at_sample(Failure{*wrong, {}, {}, nullptr, row}, ids(), out);
    }
    return {};
  }

  std::vector<StagePtr> parts_;
  bool numbered_;
};

}  // namespace

StagePtr stride_stage(StagePtr input, std::uint64_t first, std::uint64_t stride) {
  return std::make_unique<StrideStage>(std::move(input), first, stride);
}
StagePtr shuffle_stage(StagePtr input, std::uint64_t size, StepShuffle order) {
  return std::make_unique<ShuffleStage>(std::move(input), size, order);
}
StagePtr repeat_stage(StagePtr input, std::uint64_t size, std::uint64_t rounds) {
  return std::make_unique<RepeatStage>(std::move(input), size, rounds);
}
StagePtr concatenate_stage(StagePtr left, std::uint64_t left_size, StagePtr right,
                           const ElementSpec& spec) {
  return std::make_unique<ConcatenateStage>(std::move(left), left_size, std::move(right), spec);
}
StagePtr zip_stage(std::vector<StagePtr> parts, const ElementSpec& spec) {
  return std::make_unique<ZipStage>(std::move(parts), false, spec);
}
StagePtr enumerate_stage(StagePtr input, const ElementSpec& spec) {
  std::vector<StagePtr> parts;
  parts.push_back(std::move(input));
  return std::make_unique<ZipStage>(std::move(parts), true, spec);
}
StagePtr unbatch_stage(std::vector<StagePtr> leaves, Steps steps, const ElementSpec& spec) {
  IdSpace ids;
  for (const StagePtr& leaf : leaves) ids = joined(ids, leaf->ids());
  return std::make_unique<UnbatchStage>(std::move(leaves), std::move(steps), spec, std::move(ids));
}

}  // namespace penstock
