#pragma once
// The start and the settings of a pass.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "order/geometry.h"
#include "penstock/clock.h"
#include "penstock/io.h"
#include "penstock/loader.h"
#include "run/batch_shape.h"
#include "run/fetcher.h"
#include "run/sequencer.h"

namespace penstock {

struct RunStart {
  std::uint64_t pass = 0;
  std::uint64_t step = 0;  // the first to deliver
  Geometry geometry;
  StreamPlace stream;  // where a stream continues
};

struct RunSettings {
  std::string dataset = {};   // its name, for errors
  unsigned threads = 0;       // 0: compute on the consumer's thread
  unsigned pool_threads = 0;  // of the process
  std::uint64_t lookahead_bytes = UINT64_MAX;
  std::uint64_t lookahead_steps = 0;
  Nanoseconds stall_after = std::chrono::seconds(30);  // report a wait this long
  bool stall_is_error = false;
  std::function<void()> while_waiting = {};  // called by waiting threads every 50 ms, without locks
  Ledger* ledger = nullptr;                  // records skipped samples; null: failures are raised
  bool no_empty_share = false;  // a share that lost all its rows keeps one, as an empty one
  ShapeLimits shape = {};
  Clock* clock = nullptr;
  Io* io = nullptr;                     // null: the real one
  std::shared_ptr<ReadPace> pace = {};  // from earlier passes; null: nothing measured yet
};

}  // namespace penstock
