// Stages that make or change values: sources, maps, caches.
#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "plan/failures.h"
#include "plan/stages.h"
#include "sample/rows.h"
#include "trace/activity.h"

namespace penstock {
namespace {

class SourceStage final : public Stage {
 public:
  SourceStage(std::shared_ptr<const Source> source, const ElementSpec& spec, SourcePlace place)
      : Stage(spec, IdSpace{{{place.first_id, place.ordinal}}}),
        source_(std::move(source)),
        title_(source_->describe()),
        first_id_(place.first_id) {}

 protected:
  Result<void> run(const Ask& ask, const BlockView& out, Scratch& scratch) const override {
    for (std::size_t i = 0; i < out.rows; ++i)
      out.identity.sample_id[i] = first_id_ + ask.positions[i];
    if (out.identity.occurrence != nullptr)
      std::fill_n(out.identity.occurrence, out.rows, ask.turn.occurrence());
    if (out.rows > 0) trace::doing(title_, out.identity.sample_id[0], out.rows);
    return for_good_rows(out, ids(), [&](std::size_t first, std::size_t rows) {
      const Scratch::Frame frame(scratch);
      auto done =
          run_source(ask.positions.subspan(first, rows), cut_rows(out, first, rows, scratch));
      if (!done) done.failure().where.op = title_;
      return done;
    });
  }

 private:
  Result<void> run_source(std::span<const std::uint64_t> numbers, const BlockView& out) const {
    std::vector<Read> reads;
    source_->reads(numbers, reads);
    std::vector<Bytes> bytes;
    for (const Read& read : reads) {
      auto got = Io::real().read(read.object, read.offset, read.length);
      if (!got) {
        got.failure().row = bytes.size();
        return std::move(got.failure());
      }
      bytes.push_back(std::move(*got));
    }
    return source_->decode(numbers, bytes, out);
  }

  std::shared_ptr<const Source> source_;
  std::string title_;
  std::uint64_t first_id_;
};

class MapStage final : public Stage {
 public:
  MapStage(StagePtr input, std::shared_ptr<const Op> op, const ElementSpec& spec, MapPlace place)
      : Stage(spec, input->ids()),
        input_(std::move(input)),
        op_(std::move(op)),
        place_(std::move(place)) {}

 protected:
  Result<void> run(const Ask& ask, const BlockView& out, Scratch& scratch) const override {
    const Scratch::Frame frame(scratch);
    const ScratchBlock in(input_->spec(), out.rows, scratch, out.identity);
    if (auto done = input_->produce(ask, in.view(), scratch); !done) return done;
    if (out.rows > 0) trace::doing(place_.title, out.identity.sample_id[0], out.rows);
    return for_good_rows(out, ids(), [&](std::size_t first, std::size_t rows) {
      const Scratch::Frame run_frame(scratch);
      auto done = run_op(ask.turn.pass, cut_rows(in.view(), first, rows, scratch),
                         cut_rows(out, first, rows, scratch));
      if (!done) done.failure().where.op = place_.title;
      return done;
    });
  }

 private:
  Result<void> run_op(std::uint64_t pass, const BlockView& in, const BlockView& out) const {
    OpContext context;
    RowRng rng;
    if (op_->random()) {
      const RandomKey key{place_.seed, place_.ordinal, pass};
      rng = [this, key, &out](std::size_t row) {
        return key.rng(out.identity.occurrence[row], ids().key(out.identity.sample_id[row]));
      };
      context.rng = &rng;
    }
    return spec().known && input_->spec().known ? op_->run(in, out, context)
                                                : run_samples(in, out, context);
  }

  Result<void> run_samples(const BlockView& in, const BlockView& out,
                           const OpContext& context) const {
    for (std::size_t row = 0; row < in.rows; ++row) {
      if (!trace::at_sample(in.identity.sample_id[row])) return cancelled(row);
      auto made = op_->run_sample(read_row(in, row), context, row);
      if (!made) return std::move(made.failure());
      if (const auto wrong = write_row(out, row, *made))
        return Failure{*wrong,
                       {},
                       "the function must return the same structure, dtypes and shapes "
                       "for every sample; the first one decided what they are",
                       nullptr,
                       row};
    }
    return {};
  }

  StagePtr input_;
  std::shared_ptr<const Op> op_;
  MapPlace place_;
};

class CacheStage final : public Stage {
 public:
  CacheStage(StagePtr input, std::shared_ptr<RowStore> store, std::uint64_t rounds)
      : Stage(input->spec(), input->ids()),
        input_(std::move(input)),
        store_(std::move(store)),
        rounds_(rounds) {}

 protected:
  Result<void> run(const Ask& ask, const BlockView& out, Scratch& scratch) const override {
    const Scratch::Frame frame(scratch);
    // A row of its own first: the store keeps occurrences even where nobody here asks for them.
    const ScratchBlock kept(spec(), out.rows, scratch);
    const auto missing = store_->get(ask.positions, kept.view());
    if (!missing.empty())
      if (auto done = fill(ask.positions, missing, kept.view(), out, scratch); !done) return done;
    return hand_out(kept.view(), ask.turn, out);
  }

 private:
  /// Computes what the store does not have, in the first turn, and keeps it.
  Result<void> fill(std::span<const std::uint64_t> wanted, std::span<const std::uint32_t> missing,
                    const BlockView& kept, const BlockView& out, Scratch& scratch) const {
    const std::size_t count = missing.size();
    std::uint64_t* const positions = scratch.array<std::uint64_t>(count);
    for (std::size_t i = 0; i < count; ++i) positions[i] = wanted[missing[i]];
    const Ask first_turn{{0, 0}, {positions, count}};
    Identity identity{scratch.array<std::uint64_t>(count), scratch.array<std::uint64_t>(count)};
    if (out.identity.failed != nullptr) {
      identity.failed = scratch.array<std::uint8_t>(count);
      std::fill_n(identity.failed, count, std::uint8_t{0});
      identity.failures = out.identity.failures;
    }
    const ScratchBlock made(spec(), count, scratch, identity);
    if (auto done = input_->produce(first_turn, made.view(), scratch); !done) return done;
    for (std::size_t i = 0; i < count; ++i) {
      if (identity.failed != nullptr && identity.failed[i] != 0) {
        out.identity.failed[missing[i]] = 1;
        continue;
      }
      store_->put({positions + i, 1}, cut_rows(made.view(), i, 1, scratch));
      copy_rows(made.view(), i, kept, missing[i], 1);
    }
    return {};
  }

  Result<void> hand_out(const BlockView& kept, Turn turn, const BlockView& out) const {
    if (spec().known) {
      copy_rows(kept, 0, out, 0, out.rows);
    } else {
      std::memcpy(out.identity.sample_id, kept.identity.sample_id,
                  out.rows * sizeof(std::uint64_t));
      for (std::size_t row = 0; row < out.rows; ++row) {
        if (out.identity.failed != nullptr && out.identity.failed[row] != 0) continue;
        if (const auto wrong = write_row(out, row, kept.samples[row]))
          return at_sample(Failure{*wrong, {}, {}, nullptr, row}, ids(), out);
      }
    }
    if (out.identity.occurrence != nullptr)
      for (std::size_t row = 0; row < out.rows; ++row)
        out.identity.occurrence[row] = turn.occurrence() * rounds_ + kept.identity.occurrence[row];
    return {};
  }

  StagePtr input_;
  std::shared_ptr<RowStore> store_;
  std::uint64_t rounds_;
};

}  // namespace

StagePtr source_stage(std::shared_ptr<const Source> source, const ElementSpec& spec,
                      SourcePlace place) {
  return std::make_unique<SourceStage>(std::move(source), spec, place);
}

StagePtr map_stage(StagePtr input, std::shared_ptr<const Op> op, const ElementSpec& spec,
                   MapPlace place) {
  return std::make_unique<MapStage>(std::move(input), std::move(op), spec, std::move(place));
}

StagePtr cache_stage(StagePtr input, std::shared_ptr<RowStore> store, std::uint64_t rounds) {
  return std::make_unique<CacheStage>(std::move(input), std::move(store), rounds);
}

}  // namespace penstock
