// A pass that reads ahead: steps are opened before anybody works on them, so that their files are
// on their way. Streams, and the path fields that read_file looks up, are read by the workers.
// tested in src/feed/fetch_test.cc
#include "run/compute.h"
#include "run/flying.h"

namespace penstock {

void PassRun::open_ahead() {
  if (settings_.threads == 0 || !fetcher_.ahead()) return;
  while (open_step()) {
  }
}

void PassRun::queue_reads(Flying& flying) {
  flying.reads_queued = false;
  if (settings_.threads == 0 || flying.asked_for || flying.ready || !fetcher_.ahead()) return;
  std::vector<PlannedRead> reads;
  Scratch& scratch = thread_scratch();
  if (flying.whole) {
    collect_reads(plan_->program, flying.place, 0, flying.place.count, reads, scratch);
  } else {
    for (std::size_t i = 0; i < flying.shares.size(); ++i) {
      const std::uint64_t rows = flying.share_rows[i];
      // What was computed to learn the shape is there already.
      const std::uint64_t skipped = flying.learned_rows_of(i);
      collect_reads(plan_->program, flying.place, flying.first_row[i] + skipped, rows - skipped,
                    reads, scratch);
    }
  }
  if (reads.empty()) return;
  flying.reads_queued = true;
  fetcher_.queue(flying.step, std::move(reads));
}

}  // namespace penstock
