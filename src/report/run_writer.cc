// tested in src/feed/save_report_test.cc
#include "report/run_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/report.h"
#include "penstock/error.h"

namespace penstock {
namespace {

constexpr std::chrono::milliseconds kEvery{100};
constexpr unsigned kTotalsEvery = 10;      // turns
constexpr unsigned kTotalsEveryMax = 600;  // of a long run

}  // namespace

RunWriter::RunWriter(std::shared_ptr<trace::Recorder> recorder, Options options, Io& io)
    : recorder_(std::move(recorder)),
      options_(std::move(options)),
      writer_(io, options_.path, options_.bytes_max),
      events_(recorder_->run()) {
  write_totals(false);
  thread_ = std::make_unique<Thread>("ps-trace", [this] { write_until_stopped(); });
}

RunWriter::~RunWriter() {
  {
    Lock lock(mutex_);
    stopping_ = true;
    stopped_.notify_all();
  }
  thread_.reset();
  write_events();
  write_totals(true);
  writer_.close();
  if (!writer_.failure().empty())
    report(fmt::format("the trace of this run is incomplete: {}", writer_.failure()));
}

void RunWriter::write_until_stopped() {
  unsigned next = kTotalsEvery;
  for (unsigned turn = 1;; ++turn) {
    {
      Lock lock(mutex_);
      if (!stopping_) stopped_.wait_for(mutex_, kEvery);
      if (stopping_) return;
    }
    write_events();
    if (turn < next) continue;
    write_totals(false);
    // The longer the run, the rarer: a file grows by some 2 MB an hour.
    next = turn + std::clamp(turn / 20, kTotalsEvery, kTotalsEveryMax);
  }
}

void RunWriter::write_events() {
  std::vector<trace::Event> events = events_.take();
  const std::uint64_t began = recorder_->began();
  for (trace::Event& event : events) {
    event.start -= std::min(event.start, began);
    event.end -= std::min(event.end, began);
  }
  if (!events.empty()) writer_.add(events, recorder_->op_titles(), trace::thread_names());
}

void RunWriter::write_totals(bool last) {
  trace::Recording totals = recorder_->totals();
  totals.events_missed = events_.missed();
  if (options_.complete) options_.complete(totals);
  if (last && !totals.ended) totals.cut = "the epoch was left before its end";
  writer_.add_totals(std::move(totals));
}

std::string trace_path(const std::string& folder, const trace::RunFacts& facts) {
  Io& io = Io::real();
  if (auto made = io.create_folder(folder); !made)
    throw ResourceError(fmt::format("report_dir: {}", made.failure().message), {},
                        "name a folder that this process may write to");
  const std::string share = facts.shares < facts.shares_total
                                ? fmt::format("-share-{}", facts.first_share)
                                : std::string();
  const std::string stem = fmt::format("{}/epoch-{}{}", folder, facts.epoch, share);
  std::string path = stem + ".json";
  for (unsigned number = 2; io.look(path); ++number) path = fmt::format("{}-{}.json", stem, number);
  return path;
}

}  // namespace penstock
