// Stages that make or change values: sources, maps, caches.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/fault.h"
#include "plan/failures.h"
#include "plan/stages.h"
#include "sample/rows.h"
#include "trace/activity.h"

namespace penstock {
namespace {

class SourceStage final : public Stage {
 public:
  SourceStage(std::shared_ptr<const Source> source, const ElementSpec& spec, SourcePlace place)
      : Stage(spec, IdSpace{{{place.first_id, place.ordinal, source}}}),
        source_(std::move(source)),
        title_(source_->describe()),
        first_id_(place.first_id) {}
  void identify(const Ask& ask, std::uint64_t* ids, Scratch&) const override {
    for (std::size_t i = 0; i < ask.positions.size(); ++i) ids[i] = first_id_ + ask.positions[i];
  }
  void collect_reads(const Ask& ask, Scratch&, std::vector<PlannedRead>& planned) const override {
    if (!source_->has_reads()) return;
    std::vector<Read> reads;
    for (const std::uint64_t number : ask.positions) {
      reads.clear();
      source_->reads(number, reads);
      for (Read& read : reads) planned.push_back({{source_.get(), number}, std::move(read)});
    }
  }

 protected:
  Result<void> run(const Ask& ask, const BlockView& out, Scratch& scratch) const override {
    for (std::size_t i = 0; i < out.rows; ++i)
      out.identity.sample_id[i] = first_id_ + ask.positions[i];
    if (out.identity.occurrence != nullptr)
      std::fill_n(out.identity.occurrence, out.rows, ask.turn.occurrence());
    if (out.rows > 0) trace::doing(title_, out.identity.sample_id[0], out.rows);
    return for_good_rows(out, ids(), [&](std::size_t first, std::size_t rows) {
      const Scratch::Frame frame(scratch);
      const auto numbers = ask.positions.subspan(first, rows);
      const BlockView part = cut_rows(out, first, rows, scratch);
      auto done = source_->has_reads() ? read_rows(numbers, part, scratch)
                                       : source_->decode(numbers, {}, part);
      if (!done) done.failure().where.op = title_;
      return done;
    });
  }

 private:
  /// One by one: a row that cannot be read must find those before it complete.
  Result<void> read_rows(std::span<const std::uint64_t> numbers, const BlockView& out,
                         Scratch& scratch) const {
    Reader& reader = current_reader();
    std::vector<Read> reads;
    std::vector<Bytes> bytes;
    for (std::size_t row = 0; row < out.rows; ++row) {
      if (!trace::at_sample(out.identity.sample_id[row])) return cancelled(row);
      const Scratch::Frame frame(scratch);
      reads.clear();
      bytes.clear();
      source_->reads(numbers[row], reads);
      Result<void> done;
      for (std::size_t i = 0; i < reads.size() && done; ++i) {
        auto got = reader.get(reads[i], {source_.get(), numbers[row]});
        if (got) {
          bytes.push_back(std::move(*got));
        } else {
          done = std::move(got.failure());
        }
      }
      if (done)
        done = source_->decode(numbers.subspan(row, 1), bytes, cut_rows(out, row, 1, scratch));
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

class PulledStage final : public Stage {
 public:
  PulledStage(const ElementSpec& spec, IdSpace ids) : Stage(spec, std::move(ids)) {}
  void identify(const Ask& ask, std::uint64_t* ids, Scratch&) const override {
    for (std::size_t i = 0; i < ask.positions.size(); ++i)
      ids[i] = ask.pulled->identity.sample_id[ask.positions[i]];
  }

 protected:
  Result<void> run(const Ask& ask, const BlockView& out, Scratch&) const override {
    for (std::size_t row = 0; row < out.rows;) {
      std::size_t end = row + 1;
      while (end < out.rows && ask.positions[end] == ask.positions[end - 1] + 1) ++end;
      if ((ask.pulled->samples == nullptr) == (out.samples == nullptr)) {
        copy_rows(*ask.pulled, ask.positions[row], out, row, end - row);
      } else if (auto done = write(ask, out, row, end); !done) {
        return done;
      }
      row = end;
    }
    return {};
  }

 private:
  /// Samples of a spec that running showed, into columns, or the other way round.
  Result<void> write(const Ask& ask, const BlockView& out, std::size_t row, std::size_t end) const {
    for (; row < end; ++row) {
      if (out.identity.failed != nullptr && out.identity.failed[row] != kRowGood) continue;
      const std::uint64_t position = ask.positions[row];
      out.identity.sample_id[row] = ask.pulled->identity.sample_id[position];
      if (out.identity.occurrence != nullptr && ask.pulled->identity.occurrence != nullptr)
        out.identity.occurrence[row] = ask.pulled->identity.occurrence[position];
      const auto wrong = write_row(out, row, read_row(*ask.pulled, position));
      if (!wrong) continue;
      Failure failure =
          at_sample({*wrong,
                     {},
                     "every element must have the same fields; the first one decided them",
                     nullptr,
                     row},
                    ids(), out);
      if (out.identity.failed == nullptr || out.identity.failures == nullptr) return failure;
      out.identity.failures->add(std::move(failure), out.identity.failed + row);
      out.identity.failed[row] = kRowFailed;
    }
    return {};
  }
};

class MapStage final : public Stage {
 public:
  MapStage(StagePtr input, std::shared_ptr<const Op> op, const ElementSpec& spec, MapPlace place)
      : Stage(spec, input->ids()),
        input_(std::move(input)),
        op_(std::move(op)),
        place_(std::move(place)) {}
  void identify(const Ask& ask, std::uint64_t* ids, Scratch& scratch) const override {
    input_->identify(ask, ids, scratch);
  }
  void collect_reads(const Ask& ask, Scratch& scratch,
                     std::vector<PlannedRead>& reads) const override {
    input_->collect_reads(ask, scratch, reads);
  }

 protected:
  Result<void> run(const Ask& ask, const BlockView& out, Scratch& scratch) const override {
    const Scratch::Frame frame(scratch);
    const ScratchBlock in(input_->spec(), out.rows, scratch, out.identity);
    if (auto done = input_->produce(ask, in.view(), scratch); !done) return done;
    if (out.rows > 0) trace::doing(place_.title, out.identity.sample_id[0], out.rows);
    return for_good_rows(out, ids(), [&](std::size_t first, std::size_t rows) {
      const Scratch::Frame run_frame(scratch);
      auto done = run_op(ask.turn.pass, cut_rows(in.view(), first, rows, scratch),
                         cut_rows(out, first, rows, scratch), scratch);
      if (!done) done.failure().where.op = place_.title;
      return done;
    });
  }

 private:
  Result<void> run_op(std::uint64_t pass, const BlockView& in, const BlockView& out,
                      Scratch& scratch) const {
    OpContext context;
    context.scratch = &scratch;
    RowRng rng;
    if (op_->random()) {
      // Without the promise each plan draws numbers of its own.
      const auto own = PENSTOCK_OFF("random.key") ? reinterpret_cast<std::uintptr_t>(this) : 0;
      const RandomKey key{place_.seed + own, place_.ordinal, pass};
      rng = [this, key, &out](std::size_t row) {
        return key.rng(out.identity.occurrence[row], ids().key(out.identity.sample_id[row]));
      };
      context.rng = &rng;
    }
    return spec().known && input_->spec().known ? op_->run(in, out, context)
                                                : op_->run_samples(in, out, context);
  }

  StagePtr input_;
  std::shared_ptr<const Op> op_;
  MapPlace place_;
};

/// Marks the rows for which `op` says false.
class MaskStage final : public Stage {
 public:
  MaskStage(StagePtr input, std::shared_ptr<const Op> op, MapPlace place)
      : Stage(input->spec(), input->ids()),
        input_(std::move(input)),
        judge_(pulled_stage(spec(), ids()), std::move(op), ElementSpec::single(Dtype::boolean),
               std::move(place)) {}
  void identify(const Ask& ask, std::uint64_t* ids, Scratch& scratch) const override {
    input_->identify(ask, ids, scratch);
  }
  void collect_reads(const Ask& ask, Scratch& scratch,
                     std::vector<PlannedRead>& reads) const override {
    input_->collect_reads(ask, scratch, reads);
  }

 protected:
  Result<void> run(const Ask& ask, const BlockView& out, Scratch& scratch) const override {
    if (auto done = input_->produce(ask, out, scratch); !done) return done;
    if (out.identity.failed == nullptr) return {};  // somebody only looks
    const Scratch::Frame frame(scratch);
    Identity identity = out.identity;
    identity.sample_id = scratch.array<std::uint64_t>(out.rows);
    identity.occurrence = scratch.array<std::uint64_t>(out.rows);
    const ScratchBlock verdict(judge_.spec(), out.rows, scratch, identity);
    std::uint64_t* const positions = scratch.array<std::uint64_t>(out.rows);
    std::iota(positions, positions + out.rows, std::uint64_t{0});
    auto done = judge_.produce({ask.turn, {positions, out.rows}, &out}, verdict.view(), scratch);
    if (!done) return done;
    const auto* const keep = reinterpret_cast<const std::uint8_t*>(verdict.view().columns[0].data);
    for (std::size_t row = 0; row < out.rows; ++row)
      if (out.identity.failed[row] == kRowGood && keep[row] == 0)
        out.identity.failed[row] = kRowMasked;
    return {};
  }

 private:
  StagePtr input_;
  MapStage judge_;
};

class CacheStage final : public Stage {
 public:
  CacheStage(StagePtr input, std::shared_ptr<RowStore> store, std::uint64_t rounds)
      : Stage(input->spec(), input->ids()),
        input_(std::move(input)),
        store_(std::move(store)),
        rounds_(rounds) {}
  void identify(const Ask& ask, std::uint64_t* ids, Scratch& scratch) const override {
    input_->identify({{0, 0}, ask.positions}, ids, scratch);
  }
  void collect_reads(const Ask& ask, Scratch& scratch,
                     std::vector<PlannedRead>& reads) const override {
    std::vector<std::uint64_t> missing;
    for (const std::uint64_t position : ask.positions)
      if (!store_->has(position)) missing.push_back(position);
    input_->collect_reads({{0, 0}, missing}, scratch, reads);
  }

 protected:
  Result<void> run(const Ask& ask, const BlockView& out, Scratch& scratch) const override {
    const Scratch::Frame frame(scratch);
    // A row of its own first: the store keeps occurrences even where nobody here asks for them.
    const ScratchBlock kept(spec(), out.rows, scratch);
    auto missing = store_->get(ask.positions, kept.view());
    while (!missing.empty()) {
      {
        const RowStore::Claim claim(*store_, ask.positions, missing);
        if (!claim.rows().empty())
          if (auto done = fill(ask.positions, claim.rows(), kept.view(), out, scratch); !done)
            return done;
        missing = claim.others();
      }
      // Another thread computes them, for another round perhaps; where it fails we try ourselves.
      for (const std::uint32_t row : missing)
        if (!store_->wait_for(ask.positions[row], trace::still_wanted)) return cancelled(row);
      missing = store_->get(ask.positions, missing, kept.view());
    }
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
    RowFailures failures;
    identity.failed = scratch.array<std::uint8_t>(count);
    std::fill_n(identity.failed, count, kRowGood);
    if (out.identity.failures != nullptr) identity.failures = &failures;
    const ScratchBlock made(spec(), count, scratch, identity);
    if (auto done = input_->produce(first_turn, made.view(), scratch); !done) {
      done.failure().row = missing[std::min(done.failure().row, count - 1)];
      return done;
    }
    for (std::size_t i = 0; i < count; ++i) {
      copy_rows(made.view(), i, kept, missing[i], 1);
      if (identity.failed[i] != kRowGood) {
        // Not for the store; and where somebody only looks a masked row is like any other.
        if (out.identity.failed != nullptr) out.identity.failed[missing[i]] = identity.failed[i];
        continue;
      }
      if (!PENSTOCK_OFF("cache.keep"))
        store_->put({positions + i, 1}, cut_rows(made.view(), i, 1, scratch));
    }
    for (Failure& failure : failures.take_rows(identity.failed)) {
      const std::uint8_t* const flag = out.identity.failed + missing[failure.row];
      out.identity.failures->add(std::move(failure), flag);
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
        const bool wanted = out.identity.failed == nullptr || out.identity.failed[row] == kRowGood;
        if (!wanted && kept.samples[row].leaves().empty()) continue;
        if (const auto wrong = write_row(out, row, kept.samples[row]))
          return at_sample(Failure{*wrong, {}, {}, nullptr, row}, ids(), out);
      }
    }
    if (out.identity.occurrence != nullptr)
      for (std::size_t row = 0; row < out.rows; ++row)
        out.identity.occurrence[row] =
            nested_round(turn.occurrence(), rounds_, kept.identity.occurrence[row]);
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

StagePtr pulled_stage(const ElementSpec& spec, IdSpace ids) {
  return std::make_unique<PulledStage>(spec, std::move(ids));
}

StagePtr map_stage(StagePtr input, std::shared_ptr<const Op> op, const ElementSpec& spec,
                   MapPlace place) {
  return std::make_unique<MapStage>(std::move(input), std::move(op), spec, std::move(place));
}

StagePtr mask_stage(StagePtr input, std::shared_ptr<const Op> op, MapPlace place) {
  return std::make_unique<MaskStage>(std::move(input), std::move(op), std::move(place));
}

StagePtr cache_stage(StagePtr input, std::shared_ptr<RowStore> store, std::uint64_t rounds) {
  return std::make_unique<CacheStage>(std::move(input), std::move(store), rounds);
}

}  // namespace penstock
