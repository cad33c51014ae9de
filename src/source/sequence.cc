// tested in src/feed/sequence_test.cc
#include "source/sequence.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/digest.h"
#include "base/fault.h"
#include "base/guarded.h"
#include "base/report.h"
#include "penstock/error.h"
#include "sample/rows.h"
#include "trace/activity.h"

namespace penstock {
namespace {

std::string titled(const std::string& name, std::uint64_t size) {
  return fmt::format("from_sequence({}{} batches)",
                     name.empty() ? "" : fmt::format("\"{}\", ", name), size);
}

std::string digest_of(const Sample& sample) {
  Digest digest;
  for (const Tensor& leaf : sample.leaves()) {
    digest.add(fmt::format("{} {}", dtype_name(leaf.dtype()), shape_text(leaf.shape())));
    digest.add(leaf.text());
  }
  return digest.text();
}

}  // namespace

SequenceSource::SequenceSource(std::shared_ptr<Sequence> sequence, SequenceOptions options)
    : sequence_(std::move(sequence)),
      options_(std::move(options)),
      size_(sequence_->size()),
      title_(titled(options_.name, size_)) {
  if (options_.spec) row_ = std::make_shared<ElementSpec>(*options_.spec);
}

Result<void> SequenceSource::get(const Asking& asking, SequenceBatch& batch,
                                 const Context& context) {
  const trace::MeasuredCall call = context.enter(title_, asking.index, 1);
  auto done =
      guarded([&] { batch.answer = sequence_->get(asking.index); }, [] { return std::size_t{0}; });
  if (done) done = take_apart(asking, batch);
  if (!done) {
    Failure& failure = done.failure();
    failure.message = fmt::format("get({}): {}", asking.index, failure.message);
    failure.where.op = title_;
    failure.make_permanent();  // it was asked once, and is not asked again
    return done;
  }
  Lock lock(mutex_);
  const bool remember =
      options_.check && (!remembered_ || remembered_->epoch != asking.epoch) && !asked_again_;
  if (remember) remembered_ = {asking.epoch, asking.index, digest_of(batch.answer)};
  return {};
}

Result<void> SequenceSource::take_apart(const Asking& asking, SequenceBatch& batch) {
  const std::vector<Tensor>& leaves = batch.answer.leaves();
  if (leaves.empty()) return Failure{"the batch has no tensors"};
  ElementSpec row = ElementSpec::of(batch.answer);
  std::optional<std::int64_t> rows;
  for (FieldSpec& field : row.fields) {
    const bool has_rows = !field.shape.empty() && !is_variable(field.dtype);
    if (!rows && has_rows) rows = field.shape.front();
    if (!has_rows || field.shape.front() != *rows)
      return Failure{
          fmt::format("field \"{}\" ({}) does not have the rows of the batch as first "
                      "dimension{}",
                      field.path, field.text(), rows ? fmt::format(", which are {}", *rows) : "")};
    field.shape.erase(field.shape.begin());
  }
  const auto count = static_cast<std::uint64_t>(rows.value_or(0));
  if (count >= kRowsMax)
    return Failure{fmt::format("{} rows in one batch are above {}", count, kRowsMax - 1)};
  std::shared_ptr<const ElementSpec> wanted;
  {
    Lock lock(mutex_);
    if (!row_) row_ = std::make_shared<ElementSpec>(row);
    wanted = row_;
  }
  if (row != *wanted)
    return Failure{
        fmt::format("a row is {}, {} {}", row.text(),
                    options_.spec ? "declared as" : "in the first batch it was", wanted->text()),
        {},
        "all batches must have the same fields; only the number of rows may differ"};
  batch.columns.clear();
  for (const Tensor& leaf : leaves) {
    // Ops read these columns and write elsewhere.
    auto* const data = const_cast<std::byte*>(leaf.raw().data());
    batch.columns.push_back({data, count == 0 ? 0 : leaf.raw().size() / count, nullptr});
  }
  batch.sample_id.resize(count);
  for (std::uint64_t i = 0; i < count; ++i)
    batch.sample_id[i] = asking.first_id + asking.index * kRowsMax + i;
  batch.occurrence.assign(count, asking.occurrence);
  batch.view = {};
  batch.view.rows = count;
  batch.view.spec = wanted.get();
  batch.view.columns = batch.columns;
  batch.view.identity = {batch.sample_id.data(), batch.occurrence.data()};
  return {};
}

void SequenceSource::enter_epoch(std::uint64_t epoch) {
  Lock lock(mutex_);
  if (epochs_ended_ > epoch) {
    const bool plain = sequence_->plain_begin_ && sequence_->plain_end_;
    if (!told_back_ && !plain)
      report(
          fmt::format("{}: on_epoch_end was called {} times; to return to epoch {} create a new "
                      "Sequence, this one cannot go back",
                      title_, epochs_ended_, epoch));
    told_back_ = true;
    return;
  }
  while (epochs_ended_ < epoch) {
    if (!begun_) sequence_->on_epoch_begin();
    sequence_->on_epoch_end();
    begun_ = false;
    ++epochs_ended_;
  }
  if (!begun_) sequence_->on_epoch_begin();
  begun_ = true;
}

std::optional<std::string> SequenceSource::finish() {
  Lock lock(mutex_);
  std::optional<std::string> wrong;
  if (remembered_ && begun_ && remembered_->epoch == epochs_ended_ && !asked_again_) {
    asked_again_ = true;
    Sample again;
    const auto done = guarded([&, index = remembered_->index] { again = sequence_->get(index); },
                              [] { return std::size_t{0}; });
    const bool same = done && digest_of(again) == remembered_->digest;
    if (!same && !PENSTOCK_OFF("warn.asked_again"))
      wrong = fmt::format(
          "{}: get({}) {} when called again: it must depend on the index alone, or a resumed run "
          "sees other data; for a stream use from_generator",
          title_, remembered_->index,
          done ? "returned a different batch" : fmt::format("failed ({})", done.failure().message));
  }
  if (begun_) {
    sequence_->on_epoch_end();
    begun_ = false;
    ++epochs_ended_;
  }
  return wrong;
}

}  // namespace penstock
