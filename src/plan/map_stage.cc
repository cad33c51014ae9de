// Rows processed by an op, and pulled rows.
// tested in src/verb/map_test.cc
#include <utility>

#include "plan/failures.h"
#include "plan/stages.h"
#include "sample/rows.h"
#include "trace/activity.h"

namespace penstock {
namespace {

class PulledStage final : public Stage {
 public:
  PulledStage(const ElementSpec& spec, IdSpace ids) : Stage(spec, std::move(ids)) {}
  void identify(const Ask& ask, std::uint64_t* ids, const Context&) const override {
    for (std::size_t i = 0; i < ask.positions.size(); ++i)
      ids[i] = ask.pulled->identity.sample_id[ask.positions[i]];
  }

 protected:
  Result<void> run(const Ask& ask, const BlockView& out, const Context&) const override {
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
  /// Converts samples whose spec was unknown until now to columns, or the reverse.
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
  void identify(const Ask& ask, std::uint64_t* ids, const Context& context) const override {
    input_->identify(ask, ids, context);
  }
  void collect_reads(const Ask& ask, const Context& context,
                     std::vector<PlannedRead>& reads) const override {
    input_->collect_reads(ask, context, reads);
  }

 protected:
  Result<void> run(const Ask& ask, const BlockView& out, const Context& context) const override {
    const Scratch::Frame frame(context.scratch);
    const ScratchBlock in(input_->spec(), out.rows, context.scratch, out.identity);
    if (auto done = input_->produce(ask, in.view(), context); !done) return done;
    if (out.rows == 0) return {};
    const trace::MeasuredCall call =
        context.enter(place_.title, out.identity.sample_id[0], out.rows);
    call.made(dense_bytes(out));
    return for_good_rows(out, ids(), [&](std::size_t first, std::size_t rows) {
      const Scratch::Frame run_frame(context.scratch);
      auto done = run_op(ask.turn.pass, cut_rows(in.view(), first, rows, context.scratch),
                         cut_rows(out, first, rows, context.scratch), context);
      if (!done) done.failure().where.op = place_.title;
      return done;
    });
  }

 private:
  Result<void> run_op(std::uint64_t pass, const BlockView& in, const BlockView& out,
                      const Context& context) const {
    OpContext op_context(context);
    RowRng rng;
    if (op_->random()) {
      const RandomKey key{place_.seed, place_.ordinal, pass};
      rng = [this, key, &out](std::size_t row) {
        return key.rng(out.identity.occurrence[row], ids().key(out.identity.sample_id[row]));
      };
      op_context.rng = &rng;
    }
    return spec().known && input_->spec().known ? op_->run(in, out, op_context)
                                                : op_->run_samples(in, out, op_context);
  }

  StagePtr input_;
  std::shared_ptr<const Op> op_;
  MapPlace place_;
};

}  // namespace

StagePtr pulled_stage(const ElementSpec& spec, IdSpace ids) {
  return std::make_unique<PulledStage>(spec, std::move(ids));
}

StagePtr map_stage(StagePtr input, std::shared_ptr<const Op> op, const ElementSpec& spec,
                   MapPlace place) {
  return std::make_unique<MapStage>(std::move(input), std::move(op), spec, std::move(place));
}

}  // namespace penstock
