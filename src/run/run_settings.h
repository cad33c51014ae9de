#pragma once
// Where a pass starts and how it is run.

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
  std::uint64_t step = 0;  // first to deliver
  Geometry geometry;
  StreamPlace stream;  // where a stream continues
};

struct RunSettings {
  std::string dataset = {};  // its name, for errors
  unsigned threads = 0;      // 0: everything in the consumer's thread
  std::uint64_t lookahead_bytes = UINT64_MAX;
  std::uint64_t lookahead_steps = 0;
  Nanoseconds stall_after = std::chrono::seconds(30);  // a wait this long is reported
  bool stall_is_error = false;
  std::function<void()> while_waiting = {};  // called now and then by who waits, without our locks
  Ledger* ledger = nullptr;                  // where skipped samples go; null: failures are raised
  bool no_empty_share = false;  // a share that has no row left keeps one, as an empty one
  ShapeLimits shape = {};
  Clock* clock = nullptr;
  Io* io = nullptr;                     // null: the real one
  std::shared_ptr<ReadPace> pace = {};  // of earlier passes; null: nothing is known
};

}  // namespace penstock
