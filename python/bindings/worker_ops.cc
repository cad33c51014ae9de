#include "worker_ops.h"

#include <utility>
#include <vector>

#include "base/guarded.h"
#include "functions.h"
#include "graph/node.h"
#include "sample/rows.h"

namespace penstock::python {
namespace {

constexpr const char* kSameEveryTime =
    "the function must return the same structure, dtypes and numbers of dimensions for every "
    "sample, and the sizes that .spec declares";

Sample kept(const Sample& sample) {
  std::vector<Tensor> leaves;
  for (const Tensor& leaf : sample.leaves()) leaves.push_back(leaf.kept());
  return Sample::assemble(sample.structure(), std::move(leaves));
}

/// Draws what the generator of a row is made from, as the row's own function would.
void write_key(WireWriter& to, const OpContext& context, std::size_t row) {
  Rng rng = (*context.rng)(row);
  const auto [low, high] = GeneratorKey{&rng, {}}.draw();
  to.number(low);
  to.number(high);
}

class SamplesJob final : public WorkerJob {
 public:
  SamplesJob(const BlockView& in, const BlockView& out, const OpContext& context, bool draws)
      : in_(in), out_(out), context_(context) {
    rows = in.rows;
    random = draws && context.rng != nullptr;
  }
  [[nodiscard]] std::optional<std::uint64_t> sample_id(std::size_t row) const override {
    return in_.identity.sample_id[row];
  }
  void write(WireWriter& to, std::size_t first, std::size_t count) const override {
    for (std::size_t row = first; row < first + count; ++row) {
      if (random) write_key(to, context_, row);
      to.sample(read_row(in_, row));
    }
  }
  Result<void> read(WireReader& from, std::size_t first, std::size_t count) override {
    for (std::size_t row = first; row < first + count; ++row)
      if (const auto wrong = write_row(out_, row, from.sample()))
        return Failure{*wrong, {}, kSameEveryTime, nullptr, row};
    return {};
  }

 private:
  const BlockView& in_;
  const BlockView& out_;
  const OpContext& context_;
};

class OneJob final : public WorkerJob {
 public:
  OneJob(const Sample& in, const OpContext& context, std::size_t row, bool draws)
      : in_(in), context_(context), row_(row) {
    rows = 1;
    random = draws && context.rng != nullptr;
  }
  [[nodiscard]] std::optional<std::uint64_t> sample_id(std::size_t) const override {
    return std::nullopt;
  }
  void write(WireWriter& to, std::size_t, std::size_t) const override {
    if (random) write_key(to, context_, row_);
    to.sample(in_);
  }
  Result<void> read(WireReader& from, std::size_t, std::size_t) override {
    made = kept(from.sample());
    return {};
  }
  Sample made;

 private:
  const Sample& in_;
  const OpContext& context_;
  std::size_t row_;
};

class VectorJob final : public WorkerJob {
 public:
  VectorJob(const BlockView& in, const BlockView& out) : in_(in), out_(out) {
    word = Word::vector;
    rows = in.rows;
  }
  [[nodiscard]] std::optional<std::uint64_t> sample_id(std::size_t row) const override {
    return in_.identity.sample_id[row];
  }
  void write(WireWriter& to, std::size_t first, std::size_t count) const override {
    to.sample(columns_of(in_, first, count));
  }
  Result<void> read(WireReader& from, std::size_t first, std::size_t count) override {
    Scratch scratch;
    auto done = guarded([&] { write_rows(from.sample(), cut_rows(out_, first, count, scratch)); },
                        [&] { return first; });
    if (!done) done.failure().row_known = count == 1;
    return done;
  }

 private:
  const BlockView& in_;
  const BlockView& out_;
};

/// What an op of workers has in common with the one that it stands for.
class WorkerOp : public Op, public HasWorkerPool {
 public:
  WorkerOp(std::shared_ptr<const Op> local, std::shared_ptr<WorkerPool> pool)
      : HasWorkerPool(std::move(pool)), local_(std::move(local)) {}
  [[nodiscard]] std::string word() const override { return local_->word(); }
  [[nodiscard]] std::string describe() const override { return local_->describe(); }
  [[nodiscard]] ElementSpec output(const ElementSpec& input) const override {
    return local_->output(input);
  }
  [[nodiscard]] bool random() const override { return local_->random(); }
  [[nodiscard]] bool row_wise() const override { return local_->row_wise(); }
  [[nodiscard]] bool takes_samples() const override { return local_->takes_samples(); }
  [[nodiscard]] std::string name() const override { return local_->name(); }
  [[nodiscard]] std::size_t rows_at_once() const override { return pool()->workers(); }

 protected:
  [[nodiscard]] const Op& local() const { return *local_; }

 private:
  std::shared_ptr<const Op> local_;
};

class WorkerSampleOp final : public WorkerOp {
 public:
  using WorkerOp::WorkerOp;
  Result<void> run(const BlockView& in, const BlockView& out,
                   const OpContext& context) const override {
    if (InThisProcess::now()) return local().run(in, out, context);
    SamplesJob job(in, out, context, random());
    return pool()->run(job, context.activity);
  }
  Result<void> run_samples(const BlockView& in, const BlockView& out,
                           const OpContext& context) const override {
    if (InThisProcess::now()) return local().run_samples(in, out, context);
    SamplesJob job(in, out, context, random());
    return pool()->run(job, context.activity);
  }
  [[nodiscard]] Result<Sample> run_sample(const Sample& in, const OpContext& context,
                                          std::size_t row) const override {
    if (InThisProcess::now()) return local().run_sample(in, context, row);
    OneJob job(in, context, row, random());
    if (auto done = pool()->run(job, context.activity); !done) {
      done.failure().row = row;
      return std::move(done.failure());
    }
    return std::move(job.made);
  }
};

class WorkerVectorOp final : public WorkerOp {
 public:
  using WorkerOp::WorkerOp;
  Result<void> run(const BlockView& in, const BlockView& out,
                   const OpContext& context) const override {
    if (InThisProcess::now()) return local().run(in, out, context);
    VectorJob job(in, out);
    return pool()->run(job, context.activity);
  }
  [[nodiscard]] Result<Sample> run_sample(const Sample& in, const OpContext& context,
                                          std::size_t row) const override {
    if (InThisProcess::now()) return local().run_sample(in, context, row);
    const Sample rows = as_rows(in);
    OneJob job(rows, context, row, false);
    job.word = Word::vector;
    Sample made;
    auto done = pool()->run(job, context.activity);
    if (done) done = guarded([&] { made = only_row(job.made); }, [&] { return row; });
    if (!done) {
      done.failure().row = row;
      return std::move(done.failure());
    }
    return made;
  }
};

void add_pools(const Node& node, std::vector<std::shared_ptr<WorkerPool>>& pools) {
  const std::shared_ptr<const Op> found = node.verb->op();
  if (const auto* op = dynamic_cast<const HasWorkerPool*>(found.get()); op != nullptr && op->pool())
    pools.push_back(op->pool());
  for (const NodePtr& input : node.inputs) add_pools(*input, pools);
}

}  // namespace

std::shared_ptr<const Op> worker_sample_op(std::shared_ptr<const Op> local,
                                           std::shared_ptr<WorkerPool> pool) {
  return std::make_shared<WorkerSampleOp>(std::move(local), std::move(pool));
}

std::shared_ptr<const Op> worker_vector_op(std::shared_ptr<const Op> local,
                                           std::shared_ptr<WorkerPool> pool) {
  return std::make_shared<WorkerVectorOp>(std::move(local), std::move(pool));
}

WorkerLeases::WorkerLeases(const Dataset& dataset) {
  add_pools(*dataset.node(), pools_);
  for (const auto& pool : pools_) pool->lease();
}

}  // namespace penstock::python
