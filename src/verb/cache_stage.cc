// tested in src/verb/cache_test.cc
#include "verb/cache_stage.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/cancelled.h"
#include "base/fault.h"
#include "plan/failures.h"
#include "sample/rows.h"
#include "trace/activity.h"

namespace penstock {
namespace {

class CacheStage final : public Stage {
 public:
  CacheStage(StagePtr input, std::shared_ptr<RowStore> store, const CachedAt& at)
      : Stage(input->spec(), input->ids()),
        input_(std::move(input)),
        store_(std::move(store)),
        at_(at) {}
  void identify(const Ask& ask, std::uint64_t* ids, const Context& context) const override {
    input_->identify({{0, 0}, ask.positions}, ids, context);
  }
  void collect_reads(const Ask& ask, const Context& context,
                     std::vector<PlannedRead>& reads) const override {
    if (store_->has_all()) return;
    std::vector<std::uint64_t> missing;
    for (const std::uint64_t position : ask.positions)
      if (!store_->has(position)) missing.push_back(position);
    input_->collect_reads({{0, 0}, missing}, context, reads);
  }

 protected:
  Result<void> run(const Ask& ask, const BlockView& out, const Context& context) const override {
    const Scratch::Frame frame(context.scratch);
    // Typed rows go straight to `out`. The store needs occurrences even if the caller does not.
    BlockView kept = out;
    std::optional<ScratchBlock> apart;
    if (!spec().known) kept = apart.emplace(spec(), out.rows, context.scratch).view();
    if (kept.identity.occurrence == nullptr)
      kept.identity.occurrence = context.scratch.array<std::uint64_t>(out.rows);
    auto missing = store_->get(ask.positions, kept);
    while (!missing.empty()) {
      {
        const RowStore::Claim claim(*store_, ask.positions, missing);
        // Another thread may have stored a row, and ended its claim, since this one looked.
        const auto rows = claim.rows().empty() ? std::vector<std::uint32_t>()
                                               : store_->get(ask.positions, claim.rows(), kept);
        if (!rows.empty())
          if (auto done = fill(ask.positions, rows, kept, out, context); !done) return done;
        missing = claim.others();
      }
      // Another thread computes them, possibly for another round; if it fails, this thread retries.
      for (const std::uint32_t row : missing)
        if (!store_->wait_for(ask.positions[row], [&] { return !context.cancelled(); }))
          return cancelled(row);
      missing = store_->get(ask.positions, missing, kept);
    }
    return hand_out(kept, ask.turn, out);
  }

 private:
  /// Computes the rows that the store lacks, in the first turn, and stores them.
  Result<void> fill(std::span<const std::uint64_t> wanted, std::span<const std::uint32_t> missing,
                    const BlockView& kept, const BlockView& out, const Context& context) const {
    const std::size_t count = missing.size();
    std::uint64_t* const positions = context.scratch.array<std::uint64_t>(count);
    for (std::size_t i = 0; i < count; ++i) positions[i] = wanted[missing[i]];
    const Ask first_turn{{0, 0}, {positions, count}};
    Identity identity{context.scratch.array<std::uint64_t>(count),
                      context.scratch.array<std::uint64_t>(count)};
    RowFailures failures;
    identity.failed = context.scratch.array<std::uint8_t>(count);
    std::fill_n(identity.failed, count, kRowGood);
    if (out.identity.failures != nullptr) identity.failures = &failures;
    const ScratchBlock made(spec(), count, context.scratch, identity);
    if (auto done = input_->produce(first_turn, made.view(), context); !done) {
      done.failure().row = missing[std::min(done.failure().row, count - 1)];
      return done;
    }
    for (std::size_t i = 0; i < count; ++i) {
      identity.sample_id[i] -= at_.first_id;
      copy_rows(made.view(), i, kept, missing[i], 1);
      // A caller without flags treats a masked row like any other.
      if (identity.failed[i] != kRowGood && out.identity.failed != nullptr)
        out.identity.failed[missing[i]] = identity.failed[i];
    }
    store_good_rows({positions, count}, made.view(), context.scratch);
    for (Failure& failure : failures.take_rows(identity.failed)) {
      const std::uint8_t* const flag = out.identity.failed + missing[failure.row];
      out.identity.failures->add(std::move(failure), flag);
    }
    return {};
  }

  /// Failed rows are not stored.
  void store_good_rows(std::span<const std::uint64_t> positions, const BlockView& made,
                       Scratch& scratch) const {
    if (PENSTOCK_OFF("cache.keep")) return;
    const std::uint8_t* const failed = made.identity.failed;
    for (std::size_t row = 0; row < made.rows;) {
      std::size_t end = row;
      while (end < made.rows && failed[end] == kRowGood) ++end;
      if (end > row)
        store_->put(positions.subspan(row, end - row), cut_rows(made, row, end - row, scratch));
      row = end + 1;
    }
  }

  Result<void> hand_out(const BlockView& kept, Turn turn, const BlockView& out) const {
    for (std::size_t row = 0; row < out.rows; ++row)
      out.identity.sample_id[row] = kept.identity.sample_id[row] + at_.first_id;
    if (!spec().known) {
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
            nested_round(turn.occurrence(), at_.rounds, kept.identity.occurrence[row]);
    return {};
  }

  const StagePtr input_;
  const std::shared_ptr<RowStore> store_;
  const CachedAt at_;
};

}  // namespace

StagePtr cache_stage(StagePtr input, std::shared_ptr<RowStore> store, const CachedAt& at) {
  return std::make_unique<CacheStage>(std::move(input), std::move(store), at);
}

}  // namespace penstock
