#include "plan/stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sample/rows.h"

namespace penstock {

SampleKey IdSpace::key(std::uint64_t sample_id) const {
  const auto after = std::ranges::upper_bound(parts, sample_id, {}, &Part::first_id);
  const Part& part = after == parts.begin() ? parts.front() : *(after - 1);
  return {part.source, sample_id - part.first_id};
}

Result<void> Stage::produce(const Ask& ask, const BlockView& out, Scratch& scratch) const {
  if (spec_.known && out.samples == nullptr && out.spec != &spec_ && *out.spec != spec_)
    return Failure{fmt::format("elements are {} here and {} elsewhere in the dataset", spec_.text(),
                               out.spec->text()),
                   {},
                   "both sides of a concatenate must give the same fields"};
  if (!spec_.known || out.samples == nullptr) return run(ask, out, scratch);
  const Scratch::Frame frame(scratch);
  const ScratchBlock typed(spec_, out.rows, scratch, out.identity);
  if (auto done = run(ask, typed.view(), scratch); !done) return done;
  for (std::size_t row = 0; row < out.rows; ++row)
    if (out.identity.failed == nullptr || out.identity.failed[row] != kRowFailed)
      (void)write_row(out, row, read_row(typed.view(), row));
  return {};
}

Failure at_sample(Failure failure, const IdSpace& ids, const BlockView& block) {
  if (!failure.where.sample && failure.row < block.rows)
    failure.where.sample = ids.key(block.identity.sample_id[failure.row]);
  return failure;
}

}  // namespace penstock
