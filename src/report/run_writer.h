#pragma once
// Writes the trace of a run while it goes on, so that a run that is killed leaves one.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "base/thread.h"
#include "report/trace_file.h"
#include "trace/recorder.h"

namespace penstock {

/// Has a thread of its own, which copies events from the rings ten times a second, and the totals
/// once a second, in a long run once a minute. The destructor writes the rest and completes the
/// file. If the file cannot be written, that is reported once, and the run goes on.
class RunWriter {
 public:
  struct Options {
    std::string path;
    std::uint64_t bytes_max = 256ULL << 20;  // of events; later ones are counted
    /// Adds what the recorder does not know: the plan, the skipped samples.
    std::function<void(trace::Recording&)> complete = {};
  };
  RunWriter(std::shared_ptr<trace::Recorder> recorder, Options options, Io& io = Io::real());
  ~RunWriter();
  RunWriter(const RunWriter&) = delete;
  RunWriter& operator=(const RunWriter&) = delete;

 private:
  void write_until_stopped();
  void write_events();
  void write_totals(bool last);

  const std::shared_ptr<trace::Recorder> recorder_;
  const Options options_;
  TraceWriter writer_;         // used by the thread, and by the destructor after it
  trace::EventReader events_;  // likewise
  Mutex mutex_;
  Condition stopped_;
  bool stopping_ PENSTOCK_GUARDED_BY(mutex_) = false;
  std::unique_ptr<Thread> thread_;
};

/// "folder/epoch-3.json", of one of several processes "folder/epoch-3-share-1.json", after its
/// first share. A name that is taken gets a number. Creates the folder. Throws ResourceError if it
/// cannot be created.
std::string trace_path(const std::string& folder, const trace::RunFacts& facts);

}  // namespace penstock
