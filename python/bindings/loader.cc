// The loader of Python: each `for` is a loop over one epoch, with a cursor of its own.
#include "penstock/loader.h"

#include <fmt/format.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "areas.h"
#include "base/mutex.h"
#include "batches.h"
#include "feed/one_batch.h"
#include "loaders.h"
#include "short_turn.h"
#include "tails.h"
#include "trace/trace.h"
#include "values.h"
#include "workers.h"

namespace penstock::python {

namespace {

template <typename T>
std::optional<T> optional_of(const nb::dict& given, const char* key) {
  const nb::object value = given[key];
  if (value.is_none()) return std::nullopt;
  return nb::cast<T>(value);
}

}  // namespace

LoaderOptions loader_options(const nb::dict& given) {
  LoaderOptions options;
  if (const auto world = optional_of<std::uint32_t>(given, "world"))
    options.shares = Shares{*world, nb::cast<std::uint32_t>(given["rank"]), 1};
  if (const auto empty = optional_of<std::string>(given, "empty"))
    options.empty = *empty == "deliver" ? Empty::deliver : Empty::refuse;
  options.tail = tail_of_name(optional_of<std::string>(given, "tail"));
  options.threads = optional_of<unsigned>(given, "threads");
  options.lookahead_bytes = optional_of<std::uint64_t>(given, "lookahead_bytes");
  options.on_error = nb::cast<bool>(given["skip"]) ? OnError::skip : OnError::raise;
  const auto file = nb::cast<nb::bytes>(given["ledger_file"]);  // as the system has it
  options.ledger_file = {file.c_str(), file.size()};
  options.skip_limit = optional_of<std::uint64_t>(given, "skip_limit");
  options.stall_after = std::chrono::milliseconds(nb::cast<std::int64_t>(given["stall_after_ms"]));
  options.stall_is_error = nb::cast<bool>(given["stall_is_error"]);
  options.while_waiting = look_for_signals;
  return options;
}

nb::list entries_of(const Ledger& ledger) {
  nb::list entries;
  for (const LedgerEntry& entry : ledger.entries()) {
    nb::dict dict;
    dict["epoch"] = entry.epoch;
    dict["step"] = entry.step;
    dict["source"] = entry.sample.source;
    dict["number"] = entry.sample.number;
    dict["op"] = str_of(entry.op);
    dict["reason"] = str_of(entry.reason);
    entries.append(dict);
  }
  return entries;
}

nb::dict report_of(std::uint32_t trace_run, const std::vector<std::string>& decisions) {
  constexpr double kSecond = 1e-9;
  std::uint64_t steps = 0;
  std::uint64_t rows = 0;
  std::uint64_t waits = 0;
  std::uint64_t tasks = 0;
  double waited = 0;
  double worked = 0;
  for (const trace::Event& event : trace::events_of(trace_run)) {
    const double took = static_cast<double>(event.end - event.start) * kSecond;
    if (event.kind == trace::Kind::delivered) {
      ++steps;
      rows += event.rows;
    } else if (event.kind == trace::Kind::waited) {
      ++waits;
      waited += took;
    } else if (event.kind != trace::Kind::ready) {
      ++tasks;
      worked += took;
    }
  }
  nb::dict dict;
  dict["steps"] = steps;
  dict["rows"] = rows;
  dict["waits"] = waits;
  dict["wait_seconds"] = waited;
  dict["tasks"] = tasks;
  dict["work_seconds"] = worked;
  nb::list lines;
  for (const std::string& line : decisions) lines.append(str_of(line));
  dict["decisions"] = lines;
  return dict;
}

namespace {

/// One walk through the epochs; a loop of Python's holds it.
class Cursor {
 public:
  explicit Cursor(Iterator iterator) : iterator_(std::move(iterator)) {}
  std::atomic<bool> held{false};    // by a loop that has not ended
  std::atomic<bool> inside{false};  // an epoch was begun and not finished
  std::atomic<std::uint64_t> loop_batches{0};
  std::atomic<bool> busy{false};

  Iterator& iterator() {
    if (!iterator_) throw CancelledError("the interpreter ends, and the loader with it");
    return *iterator_;
  }
  void stop() {
    if (iterator_) iterator_->stop();
  }
  /// The last hooks of Sequences are called now, while there is an interpreter.
  void end() {
    if (busy.exchange(true)) {
      stop();
    } else {
      iterator_.reset();
    }
  }

 private:
  std::optional<Iterator> iterator_;
};

class LoaderBox final : public Running {
 public:
  LoaderBox(const Dataset& dataset, const LoaderOptions& options, bool debug)
      : debug_(debug),
        leases_(dataset),
        loader_(dataset, options),
        main_(std::make_shared<Cursor>(loader_.iterate())) {
    Lock lock(mutex_);
    newest_ = main_;
    all_ = {main_};
  }

  void stop_threads() noexcept override {
    std::vector<std::weak_ptr<Cursor>> all;
    {
      Lock lock(mutex_);
      all = all_;
    }
    for (const auto& each : all) {
      try {
        if (const auto cursor = each.lock()) cursor->end();
      } catch (const std::exception&) {  // nobody is left to hear it
      }
    }
  }

  [[nodiscard]] const Loader& loader() const { return loader_; }
  [[nodiscard]] const TeamLeases& leases() const { return leases_; }
  /// True when functions are called by the thread that asks for batches.
  [[nodiscard]] bool debug() const { return debug_; }
  [[nodiscard]] std::shared_ptr<Cursor> newest() const {
    Lock lock(mutex_);
    return newest_;
  }

  /// The cursor of a new loop: the usual one, or another if that is in use.
  std::shared_ptr<Cursor> begin() {
    std::shared_ptr<Cursor> before;
    std::shared_ptr<Cursor> cursor;
    bool left = false;  // the epoch of the loop before ends here, or goes on beside this one
    {
      Lock lock(mutex_);
      before = newest_;
      left = before->held || before->inside;
      cursor = main_->held.exchange(true) ? std::make_shared<Cursor>(loader_.iterate()) : main_;
      newest_ = cursor;
      if (cursor != main_) {
        std::erase_if(all_, [](const auto& each) { return each.expired(); });
        all_.push_back(cursor);
      }
    }
    cursor->held = true;
    const std::uint64_t epoch = before->iterator().epoch() + (left ? 1 : 0);
    if (cursor == main_ && main_->inside) watch_.done(main_->loop_batches);
    if (cursor != before || left) cursor->iterator().set_epoch(epoch);
    cursor->inside = false;
    cursor->loop_batches = 0;
    return cursor;
  }

  /// A loop has let go of its cursor.
  void done(Cursor& cursor) {
    constexpr std::uint64_t kWholeEpoch = 2;  // more than one batch, as far as the watch cares
    if (!cursor.inside) watch_.done(kWholeEpoch);
    cursor.held = false;
  }

 private:
  const bool debug_;
  const TeamLeases leases_;  // longer than what calls the workers
  Loader loader_;
  OneBatchWatch watch_;
  const std::shared_ptr<Cursor> main_;
  mutable Mutex mutex_;
  std::shared_ptr<Cursor> newest_ PENSTOCK_GUARDED_BY(mutex_);
  std::vector<std::weak_ptr<Cursor>> all_ PENSTOCK_GUARDED_BY(mutex_);
};
using BoxPtr = std::shared_ptr<LoaderBox>;

/// Lets go of the engine's parts with the interpreter unlocked: their threads may need it to end.
template <typename T>
void let_go(T& owner) {
  if (!owner) return;
  if (forked_while_running()) {
    new T(std::move(owner));  // see forked_while_running
    return;
  }
  const Unlocked unlocked;
  owner.reset();
}

class BusyScope {
 public:
  explicit BusyScope(Cursor& cursor) : cursor_(cursor) {
    if (cursor_.busy.exchange(true))
      throw ConfigError("another thread waits in next() of this iterator", {},
                        "give each thread an iterator of its own, or a lock around next()");
  }
  ~BusyScope() { cursor_.busy = false; }
  BusyScope(const BusyScope&) = delete;
  BusyScope& operator=(const BusyScope&) = delete;

 private:
  Cursor& cursor_;
};

class EpochLoop {
 public:
  explicit EpochLoop(BoxPtr box) : box_(std::move(box)) {
    const Unlocked unlocked;
    cursor_ = box_->begin();
  }
  ~EpochLoop() {
    end();
    let_go(cursor_);
    let_go(box_);
  }
  EpochLoop(const EpochLoop&) = delete;
  EpochLoop& operator=(const EpochLoop&) = delete;

  nb::object next() {
    check_may_run();
    if (ended_) throw nb::stop_iteration();
    const BusyScope busy(*cursor_);
    cursor_->inside = true;
    // With the interpreter held: what lies ready must not wait until a function lets go of it.
    std::optional<Batch> batch = cursor_->iterator().next_if_ready();
    if (!batch) {
      const Unlocked unlocked;
      const InThisProcess here(box_->debug());
      batch = cursor_->iterator().next();
      ShortTurn::let_pass();
    }
    throw_if_interrupted();
    if (!batch) {
      cursor_->inside = false;
      end();
      throw nb::stop_iteration();
    }
    ++cursor_->loop_batches;
    return make_batch(std::move(*batch));
  }

  /// Steps that are left, for list() and progress bars; 0 where that is not known.
  [[nodiscard]] std::uint64_t hint() const {
    const Cardinality steps = box_->loader().plan().steps();
    if (!steps.is_counted() || ended_) return 0;
    return steps.count() - std::min(steps.count(), cursor_->loop_batches.load());
  }

 private:
  void end() {
    if (ended_ || forked_while_running()) return;
    ended_ = true;
    box_->done(*cursor_);
  }

  BoxPtr box_;
  std::shared_ptr<Cursor> cursor_;
  bool ended_ = false;
};

class PyLoader {
 public:
  PyLoader(const Dataset& dataset, const nb::dict& given) {
    check_may_run();
    const LoaderOptions options = loader_options(given);
    const bool debug = nb::cast<bool>(given["debug"]);
    const Unlocked unlocked;
    const InThisProcess here(debug);
    box_ = std::make_shared<LoaderBox>(dataset, options, debug);
  }
  ~PyLoader() { let_go(box_); }
  PyLoader(const PyLoader&) = delete;
  PyLoader& operator=(const PyLoader&) = delete;

  [[nodiscard]] LoaderBox& box() const {
    check_may_run();
    return *box_;
  }
  [[nodiscard]] nb::object iterate() const {
    check_may_run();
    return make_object<EpochLoop>(box_);
  }
  [[nodiscard]] std::string state() const {
    const auto cursor = box().newest();
    const BusyScope busy(*cursor);
    const Unlocked unlocked;
    return cursor->iterator().state().to_json();
  }
  void restore(const std::string& text) const {
    const auto cursor = box().newest();
    const BusyScope busy(*cursor);
    const Unlocked unlocked;
    cursor->iterator().restore(State::parse(text));
    cursor->inside = false;
  }
  void set_epoch(std::uint64_t epoch) const {
    const auto cursor = box().newest();
    const BusyScope busy(*cursor);
    const Unlocked unlocked;
    cursor->iterator().set_epoch(epoch);
    cursor->inside = false;
  }
  [[nodiscard]] nb::object step(std::uint64_t step) const {
    const auto cursor = box().newest();
    const BusyScope busy(*cursor);
    std::vector<Batch> batches;
    {
      const Unlocked unlocked;
      const InThisProcess here(box_->debug());
      batches = cursor->iterator().replay(step);
    }
    return make_batch(std::move(batches.front()));
  }
  void stop() const {
    if (forked_while_running()) return;
    const Unlocked unlocked;
    box_->newest()->stop();
    box_->leases().rest();
  }
  [[nodiscard]] nb::list worker_ids() const {
    nb::list ids;
    for (const int id : box().leases().process_ids()) ids.append(id);
    return ids;
  }

 private:
  BoxPtr box_;
};

}  // namespace

void bind_loader(nb::module_& module) {
  nb::class_<EpochLoop>(module, "EpochLoop", "The batches of one epoch.")
      .def(
          "__iter__", [](nb::handle self) { return nb::borrow(self); },
          nb::sig("def __iter__(self) -> EpochLoop"))
      .def("__next__", &EpochLoop::next, nb::sig("def __next__(self) -> Batch"))
      .def("__length_hint__", &EpochLoop::hint);
  nb::class_<PyLoader> loader(module, "Loader");
  loader.def(nb::init<const Dataset&, const nb::dict&>());
  loader.def("iterate", &PyLoader::iterate, nb::sig("def iterate(self) -> EpochLoop"));
  loader.def("plan", [](const PyLoader& self) { return self.box().loader().plan(); });
  loader.def("epoch", [](const PyLoader& self) { return self.box().newest()->iterator().epoch(); });
  loader.def("state", &PyLoader::state);
  loader.def("restore", &PyLoader::restore);
  loader.def("set_epoch", &PyLoader::set_epoch);
  loader.def("step", &PyLoader::step, nb::sig("def step(self, step: int, /) -> Batch"));
  loader.def("stop", &PyLoader::stop);
  loader.def("worker_ids", &PyLoader::worker_ids, "Ids of the worker processes that are alive.");
  loader.def("report", [](const PyLoader& self) {
    const auto cursor = self.box().newest();
    const Iterator& iterator = cursor->iterator();
    return report_of(iterator.trace_run(), iterator.decisions());
  });
  loader.def("ledger_entries", [](const PyLoader& self) {
    return entries_of(self.box().newest()->iterator().ledger());
  });
  loader.def("ledger_count",
             [](const PyLoader& self) { return self.box().newest()->iterator().ledger().count(); });
  loader.def("ledger_text",
             [](const PyLoader& self) { return self.box().newest()->iterator().ledger().text(); });
}

}  // namespace penstock::python
