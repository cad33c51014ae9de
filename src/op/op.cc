#include "op/op.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "base/cancelled.h"
#include "base/json.h"
#include "sample/rows.h"
#include "trace/activity.h"

namespace penstock {

Json Op::arguments() const {
  return Json::object();
}

Result<Sample> Op::run_sample(const Sample& in, const OpContext& context, std::size_t row) const {
  Scratch scratch;
  const ElementSpec in_spec = ElementSpec::of(in);
  ElementSpec out_spec;
  try {
    out_spec = output(in_spec);
  } catch (const ConfigError& error) {
    return Failure{error.message(), {}, error.remedy(), std::current_exception(), row};
  }
  ScratchBlock from(in_spec, 1, scratch);
  ScratchBlock to(out_spec, 1, scratch);
  if (const auto wrong = write_row(from.view(), 0, in))
    return Failure{*wrong, {}, {}, nullptr, row};
  OpContext one = context;
  RowRng rng;
  if (context.rng != nullptr) {
    rng = [&](std::size_t) { return (*context.rng)(row); };
    one.rng = &rng;
  }
  if (auto done = run(from.view(), to.view(), one); !done) {
    done.failure().row = row;
    return std::move(done.failure());
  }
  Sample result = read_row(to.view(), 0);
  std::vector<Tensor> leaves;
  for (const Tensor& leaf : result.leaves()) leaves.push_back(leaf.kept());
  return Sample::assemble(result.structure(), std::move(leaves));
}

std::size_t field_index(const std::string& word, const std::string& field,
                        const ElementSpec& spec) {
  const auto index = spec.find(field);
  if (!index) throw ConfigError(fmt::format("{}: no field \"{}\" in {}", word, field, spec.text()));
  return *index;
}

void copy_other_columns(const BlockView& in, const BlockView& out, std::size_t index) {
  for (std::size_t i = 0; i < in.columns.size(); ++i) {
    if (i == index) continue;
    const Column& from = in.columns[i];
    const Column& to = out.columns[i];
    if (!from.dense()) {
      for (std::size_t row = 0; row < in.rows; ++row) to.tensors[row] = from.tensors[row];
    } else if (in.rows * from.row_bytes > 0) {
      std::memcpy(to.data, from.data, in.rows * from.row_bytes);
    }
  }
}

Result<void> Op::run_samples(const BlockView& in, const BlockView& out,
                             const OpContext& context) const {
  for (std::size_t row = 0; row < in.rows; ++row) {
    if (!context.at_sample(in.identity.sample_id[row])) return cancelled(row);
    auto made = run_sample(read_row(in, row), context, row);
    if (!made) return std::move(made.failure());
    if (const auto wrong = write_row(out, row, *made))
      return Failure{*wrong,
                     {},
                     "the function must return the same structure, dtypes and numbers of "
                     "dimensions for every sample, and the sizes that .spec declares",
                     nullptr,
                     row};
  }
  return {};
}

}  // namespace penstock
