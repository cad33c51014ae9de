#include "collate.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/guarded.h"
#include "functions.h"
#include "sample/rows.h"
#include "values.h"
#include "worker_ops.h"

namespace penstock::python {
namespace {

std::vector<Sample> samples_of(const BlockView& in) {
  std::vector<Sample> samples;
  samples.reserve(in.rows);
  for (std::size_t row = 0; row < in.rows; ++row) samples.push_back(read_row(in, row));
  return samples;
}

/// Row `row` of a batch, valid as long as the batch.
Sample row_of(const Sample& batch, std::size_t row) {
  std::vector<Tensor> leaves;
  for (const Tensor& leaf : batch.leaves()) {
    const std::size_t bytes = leaf.raw().size() / static_cast<std::size_t>(leaf.shape().front());
    leaves.push_back(Tensor::view(leaf.dtype(), {leaf.shape().begin() + 1, leaf.shape().end()},
                                  leaf.raw().subspan(row * bytes, bytes), nullptr));
  }
  return Sample::assemble(batch.structure(), std::move(leaves));
}

/// Writes the batch that the function returned for `out.rows` samples.
Result<void> put(const Sample& made, const BlockView& out) {
  const std::vector<std::string> paths = made.structure().paths();
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const Tensor& leaf = made.leaves()[i];
    if (is_variable(leaf.dtype()) || leaf.shape().empty() ||
        leaf.shape().front() != static_cast<std::int64_t>(out.rows))
      return Failure{
          fmt::format(
              "collate_fn: it was given {} samples, field \"{}\" of what it returned is {}{}",
              out.rows, paths[i], dtype_name(leaf.dtype()), shape_text(leaf.shape())),
          {},
          "return arrays with one row per sample, in dicts and tuples",
          nullptr,
          0};
  }
  for (std::size_t row = 0; row < out.rows; ++row)
    if (const auto wrong = write_row(out, row, row_of(made, row)))
      return Failure{fmt::format("collate_fn: {}", *wrong),
                     {},
                     "return the same structure and dtypes for every batch; if a size varies "
                     "by batch, declare spec= with None for it",
                     nullptr,
                     row};
  return {};
}

class ListJob final : public WorkerJob {
 public:
  ListJob(const BlockView& in, const BlockView& out) : in_(in), out_(out) {
    word = Word::list;
    rows = in.rows;
    divisible = false;
  }
  [[nodiscard]] std::optional<std::uint64_t> sample_id(std::size_t row) const override {
    return in_.identity.sample_id[row];
  }
  void write(WireWriter& to, std::size_t first, std::size_t count) const override {
    for (std::size_t row = first; row < first + count; ++row) to.sample(read_row(in_, row));
  }
  Result<void> read(WireReader& from, std::size_t, std::size_t) override {
    return put(from.sample(), out_);
  }

 private:
  const BlockView& in_;
  const BlockView& out_;
};

class CollateOp final : public Op, public HasWorkerPool {
 public:
  CollateOp(nb::handle fn, std::string name, std::optional<ElementSpec> spec,
            std::shared_ptr<WorkerPool> pool)
      : HasWorkerPool(std::move(pool)), fn_(fn), name_(std::move(name)), spec_(std::move(spec)) {}
  [[nodiscard]] std::string word() const override { return "map"; }
  [[nodiscard]] std::string describe() const override {
    return fmt::format("map \"{}\" (list of samples) -> batch", name_);
  }
  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] bool row_wise() const override { return false; }
  [[nodiscard]] bool takes_lists() const override { return true; }
  [[nodiscard]] std::size_t rows_at_once() const override { return pool() ? pool()->workers() : 0; }
  [[nodiscard]] ElementSpec output(const ElementSpec&) const override {
    return spec_.value_or(ElementSpec::unknown());
  }

  Result<void> run(const BlockView& in, const BlockView& out,
                   const OpContext& context) const override {
    if (in.rows == 0) return {};
    if (pool() && !InThisProcess::now()) {
      ListJob job(in, out);
      auto done = pool()->run(job, context.activity);
      if (!done) done.failure().row_known = false;
      return done;
    }
    Sample made;
    auto done = guarded(
        [&] {
          const std::vector<Sample> samples = samples_of(in);
          made = with_interpreter([&] { return sample_made(call_samples(fn_.get(), samples)); });
        },
        [] { return std::size_t{0}; });
    if (done) done = put(made, out);
    if (!done) done.failure().row_known = false;
    return done;
  }

 private:
  Callee fn_;
  std::string name_;
  std::optional<ElementSpec> spec_;
};

}  // namespace

std::shared_ptr<const Op> collate_op(nb::handle fn, const std::string& name,
                                     const std::optional<ElementSpec>& spec,
                                     std::shared_ptr<WorkerPool> pool) {
  return std::make_shared<CollateOp>(fn, name, spec, std::move(pool));
}

}  // namespace penstock::python
