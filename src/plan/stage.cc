#include "plan/stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/fault.h"
#include "sample/rows.h"

namespace penstock {

const IdSpace::Part& IdSpace::part(std::uint64_t sample_id) const {
  const auto after = std::ranges::upper_bound(parts, sample_id, {}, &Part::first_id);
  return after == parts.begin() ? parts.front() : *(after - 1);
}

SampleKey IdSpace::key(std::uint64_t sample_id) const {
  const Part& found = part(sample_id);
  return {found.source, sample_id - found.first_id};
}

std::string IdSpace::file_of(std::uint64_t sample_id) const {
  if (parts.empty()) return {};
  const Part& found = part(sample_id);
  return found.origin ? found.origin->file_of(sample_id - found.first_id) : "";
}

Result<void> Stage::produce(const Ask& ask, const BlockView& out, const Context& context) const {
  const bool same = out.samples == nullptr && (out.spec == &spec_ || *out.spec == spec_);
  if (!spec_.known || same) return run(ask, out, context);
  // Sizes that were learned from one side of a concatenate may be declared, as open, on the other.
  const bool takes_any_sizes =
      std::ranges::any_of(out.columns, [](const Column& to) { return to.others != nullptr; });
  const std::string remedy = "both sides of a concatenate must have the same fields";
  if (out.samples == nullptr && !takes_any_sizes)
    return Failure{fmt::format("elements are {} here and {} elsewhere in the dataset", spec_.text(),
                               out.spec->text()),
                   {},
                   remedy};
  const Scratch::Frame frame(context.scratch);
  const ScratchBlock typed(spec_, out.rows, context.scratch, out.identity);
  if (auto done = run(ask, typed.view(), context); !done) return done;
  for (std::size_t row = 0; row < out.rows; ++row) {
    const std::uint8_t flag = out.identity.failed == nullptr ? kRowGood : out.identity.failed[row];
    if (flag == kRowFailed) continue;
    const auto wrong = write_row(out, row, read_row(typed.view(), row));
    if (wrong && flag == kRowGood)  // a masked row need not have been computed
      return at_sample(Failure{*wrong, {}, remedy, nullptr, row}, ids(), out);
  }
  return {};
}

Failure at_sample(Failure failure, const IdSpace& ids, const BlockView& block) {
  if (failure.where.sample || failure.row >= block.rows) return failure;
  const std::uint64_t id = block.identity.sample_id[failure.row];
  failure.where.sample = ids.key(id);
  if (failure.where.file.empty() && !PENSTOCK_OFF("failure.file"))
    failure.where.file = ids.file_of(id);
  return failure;
}

}  // namespace penstock
