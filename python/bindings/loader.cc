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
#include "callee.h"
#include "feed/epoch_loop.h"
#include "loaders.h"
#include "one_at_a_time.h"
#include "short_turn.h"
#include "values.h"
#include "workers.h"

namespace penstock::python {

nb::list entries_of(const std::vector<LedgerEntry>& ledger) {
  nb::list entries;
  for (const LedgerEntry& entry : ledger) {
    nb::dict dict;
    dict["epoch"] = entry.epoch;
    dict["step"] = entry.step;
    dict["source"] = entry.sample.source;
    dict["number"] = entry.sample.number;
    dict["op"] = str_of(entry.op);
    dict["reason"] = str_of(entry.reason);
    if (!entry.file.empty()) dict["file"] = str_of(entry.file);
    entries.append(dict);
  }
  return entries;
}

namespace {

[[noreturn]] void throw_closed() {
  throw CancelledError("the loader was closed, or the interpreter is exiting", {},
                       "create a new Loader");
}

/// One walk through the epochs; a loop of Python's holds it.
class Cursor {
 public:
  Cursor(Iterator iterator, OneBatchWatch& watch)
      : epochs(watch), iterator_(std::make_shared<Iterator>(std::move(iterator))) {}
  std::atomic<bool> held{false};  // by a loop that has not ended
  EpochLoop epochs;
  std::atomic<bool> in_next{false};
  OneAtATime use;

  [[nodiscard]] std::shared_ptr<Iterator> iterator() const {
    Lock lock(mutex_);
    if (!iterator_ || ended_) throw_closed();
    return iterator_;
  }
  void stop() const {
    std::shared_ptr<Iterator> iterator;
    {
      Lock lock(mutex_);
      iterator = iterator_;
    }
    if (iterator) iterator->stop();
  }
  /// Stops and destroys the iterator, or only stops it where a thread is inside. The last hooks of
  /// Sequences are called now, while there is an interpreter.
  void end() {
    const Inside only(use, std::try_to_lock);
    std::shared_ptr<Iterator> iterator;
    {
      Lock lock(mutex_);
      ended_ = true;
      if (only) iterator = std::exchange(iterator_, nullptr);
    }
    if (!only) stop();
  }

 private:
  mutable Mutex mutex_;
  std::shared_ptr<Iterator> iterator_ PENSTOCK_GUARDED_BY(mutex_);
  bool ended_ PENSTOCK_GUARDED_BY(mutex_) = false;
};

/// Goes to the start of an epoch, also of the one in which a state was restored.
void go_to_start(Iterator& iterator, std::uint64_t epoch) {
  if (iterator.epoch() == epoch) iterator.set_epoch(epoch + 1);
  iterator.set_epoch(epoch);
}

class LoaderBox final : public Running {
 public:
  LoaderBox(const Dataset& dataset, const LoaderOptions& options, bool debug)
      : debug_(debug),
        leases_(dataset),
        loader_(std::make_shared<Loader>(dataset, options)),
        main_(std::make_shared<Cursor>(loader_->iterate(), watch_)) {
    Lock lock(mutex_);
    newest_ = main_;
    all_ = {main_};
  }

  void stop_threads() noexcept override {
    for (const auto& cursor : cursors()) {
      try {
        cursor->end();
      } catch (const std::exception&) {  // nobody is left to hear it
      }
    }
  }
  void stop() {
    for (const auto& cursor : cursors()) cursor->stop();
    leases_.rest();
  }
  /// Ends all loops, and the worker processes, and lets go of the dataset; the loader cannot be
  /// used afterwards.
  void close() {
    for (const auto& cursor : cursors()) cursor->end();
    leases_.rest();
    std::shared_ptr<Loader> loader;
    Lock lock(mutex_);
    loader.swap(loader_);
  }

  [[nodiscard]] std::shared_ptr<Loader> loader() const {
    Lock lock(mutex_);
    if (!loader_) throw_closed();
    return loader_;
  }
  [[nodiscard]] const WorkerLeases& leases() const { return leases_; }
  /// True when functions are called by the thread that asks for batches.
  [[nodiscard]] bool debug() const { return debug_; }
  [[nodiscard]] std::shared_ptr<Cursor> newest() const {
    Lock lock(mutex_);
    return newest_;
  }

  /// The cursor of a new loop: the one whose place was set for it, else the usual one, or another
  /// if that is in use.
  std::shared_ptr<Cursor> begin() {
    std::shared_ptr<Cursor> before;
    std::shared_ptr<Cursor> cursor;
    bool left = false;  // the epoch of the loop before ends here, or goes on beside this one
    {
      Lock lock(mutex_);
      before = newest_;
      if (next_) {
        before = cursor = std::exchange(next_, nullptr);
      } else {
        left = before->held || before->epochs.inside();
        cursor = free_cursor();
      }
      cursor->held = true;
      newest_ = cursor;
    }
    static_cast<void>(cursor->epochs.begin());  // `left` knows of loops on other cursors, too
    if (cursor != before || left)
      go_to_start(*cursor->iterator(), before->iterator()->epoch() + (left ? 1 : 0));
    return cursor;
  }

  /// The next loop begins there. Loops that are under way stay where they are.
  void restore(const State& state) {
    set_place([&](Iterator& iterator, bool) { iterator.restore(state); }, true);
  }
  void set_epoch(std::uint64_t epoch) {
    set_place(
        [&](Iterator& iterator, bool restored) {
          if (restored) {
            iterator.set_epoch(epoch);  // which keeps the place in the epoch of the state
          } else {
            go_to_start(iterator, epoch);
          }
        },
        false);
  }

 private:
  /// All that are alive.
  [[nodiscard]] std::vector<std::shared_ptr<Cursor>> cursors() const {
    std::vector<std::shared_ptr<Cursor>> alive;
    Lock lock(mutex_);
    for (const auto& each : all_)
      if (auto cursor = each.lock()) alive.push_back(std::move(cursor));
    return alive;
  }
  std::shared_ptr<Cursor> free_cursor() PENSTOCK_REQUIRES(mutex_) {
    if (!main_->held) return main_;
    if (!loader_) throw_closed();
    auto cursor = std::make_shared<Cursor>(loader_->iterate(), watch_);
    std::erase_if(all_, [](const auto& each) { return each.expired(); });
    all_.push_back(cursor);
    return cursor;
  }
  /// `set(iterator, restored)` for the cursor of the next loop; `restored`: a state was loaded into
  /// it since the last loop began.
  template <typename Set>
  void set_place(Set set, bool restores) {
    std::shared_ptr<Cursor> cursor;
    bool restored = false;
    {
      Lock lock(mutex_);
      cursor = next_ ? next_ : free_cursor();
      restored = next_ && next_is_restored_;
    }
    const Inside only(cursor->use);
    set(*cursor->iterator(), restored);
    cursor->epochs.move();
    Lock lock(mutex_);
    next_ = newest_ = cursor;
    next_is_restored_ = restored || restores;
  }

  const bool debug_;
  const WorkerLeases leases_;  // longer than what calls the workers
  OneBatchWatch watch_;
  mutable Mutex mutex_;
  std::shared_ptr<Loader> loader_ PENSTOCK_GUARDED_BY(mutex_);
  const std::shared_ptr<Cursor> main_;
  std::shared_ptr<Cursor> newest_ PENSTOCK_GUARDED_BY(mutex_);
  /// Of the next loop, where its place was set since the last one began.
  std::shared_ptr<Cursor> next_ PENSTOCK_GUARDED_BY(mutex_);
  bool next_is_restored_ PENSTOCK_GUARDED_BY(mutex_) = false;
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

/// A thread is in `next` while it lives.
class NextScope {
 public:
  explicit NextScope(Cursor& cursor) : cursor_(cursor) {
    if (cursor_.in_next.exchange(true))
      throw ConfigError("another thread waits in next() of this iterator", {},
                        "give each thread its own iterator, or put a lock around next()");
  }
  ~NextScope() { cursor_.in_next = false; }
  NextScope(const NextScope&) = delete;
  NextScope& operator=(const NextScope&) = delete;

 private:
  Cursor& cursor_;
};

class LoaderLoop {
 public:
  Owned owned;

  LoaderLoop(BoxPtr box, Owned owns) : owned(std::move(owns)), box_(std::move(box)) {
    const Unlocked unlocked;
    cursor_ = box_->begin();
  }
  ~LoaderLoop() {
    end();
    let_go(cursor_);
    let_go(box_);
  }
  LoaderLoop(const LoaderLoop&) = delete;
  LoaderLoop& operator=(const LoaderLoop&) = delete;

  nb::object next() {
    check_may_run();
    if (ended_) throw nb::stop_iteration();
    throw_if_interrupted();  // before a batch is taken, which would be lost
    const NextScope only(*cursor_);
    std::optional<Batch> batch;
    // With the interpreter held: what lies ready must not wait until a function lets go of it.
    if (const Inside inside(cursor_->use, std::try_to_lock); inside) {
      cursor_->epochs.enter();
      batch = cursor_->iterator()->next_if_ready();
    }
    if (!batch) {
      const Unlocked unlocked;
      const InThisProcess here(box_->debug());
      const Inside inside(cursor_->use);  // waits for a state_dict() of another thread
      cursor_->epochs.enter();
      batch = cursor_->iterator()->next();
      ShortTurn::let_pass();
    }
    if (!batch) {
      cursor_->epochs.end_epoch();
      end();
      throw nb::stop_iteration();
    }
    cursor_->epochs.took_batch();
    return make_batch(std::move(*batch));
  }

  /// Steps that are left, for list() and progress bars; 0 where that is not known.
  [[nodiscard]] std::uint64_t hint() const {
    if (ended_) return 0;
    const Cardinality steps = box_->loader()->plan().steps();
    if (!steps.is_counted()) return 0;
    return steps.count() - std::min(steps.count(), cursor_->epochs.batches());
  }

 private:
  void end() {
    if (ended_ || forked_while_running()) return;
    ended_ = true;
    cursor_->held = false;
  }

  BoxPtr box_;
  std::shared_ptr<Cursor> cursor_;
  bool ended_ = false;
};

class PyLoader {
  /// `body(cursor)` with the newest cursor, when no other thread is in it, without the interpreter.
  template <typename Body>
  [[nodiscard]] auto use(Body body) const {
    LoaderBox& own = box();
    const Unlocked unlocked;
    const auto cursor = own.newest();
    const Inside inside(cursor->use);
    return body(*cursor);
  }

 public:
  Owned owned;

  PyLoader(const Owning<Dataset>& dataset, const nb::dict& given) : owned(dataset.owned) {
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
    return make_object<LoaderLoop>(box_, owned);
  }
  [[nodiscard]] std::string state() const {
    return use([](Cursor& cursor) { return cursor.iterator()->state().to_json(); });
  }
  void restore(const std::string& text) const {
    LoaderBox& own = box();
    const Unlocked unlocked;
    own.restore(State::parse(text));
  }
  void set_epoch(std::uint64_t epoch) const {
    LoaderBox& own = box();
    const Unlocked unlocked;
    own.set_epoch(epoch);
  }
  [[nodiscard]] nb::object step(std::uint64_t step) const {
    const bool debug = box().debug();
    std::vector<Batch> batches = use([&](Cursor& cursor) {
      const InThisProcess here(debug);
      return cursor.iterator()->replay(step);
    });
    return make_batch(std::move(batches.front()));
  }
  /// What any thread may ask, also while another one waits in next().
  template <typename Look>
  [[nodiscard]] auto look(Look look) const {
    LoaderBox& own = box();
    const Unlocked unlocked;
    const auto cursor = own.newest();
    return look(*cursor->iterator());
  }
  void close() {
    if (forked_while_running()) return;
    {
      const Unlocked unlocked;
      box_->close();
    }
    owned.clear();
  }
  void stop() const {
    if (forked_while_running()) return;
    const Unlocked unlocked;
    box_->stop();
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
  nb::class_<LoaderLoop>(module, "EpochLoop", "The batches of one epoch.",
                         nb::type_slots(owning_slots<LoaderLoop>()))
      .def(
          "__iter__", [](nb::handle self) { return nb::borrow(self); },
          nb::sig("def __iter__(self) -> EpochLoop"))
      .def("__next__", &LoaderLoop::next, nb::sig("def __next__(self) -> Batch"))
      .def("__length_hint__", &LoaderLoop::hint);
  nb::class_<PyLoader> loader(module, "Loader", nb::type_slots(owning_slots<PyLoader>()));
  loader.def(nb::init<const Owning<Dataset>&, const nb::dict&>());
  loader.def("iterate", &PyLoader::iterate, nb::sig("def iterate(self) -> EpochLoop"));
  loader.def("plan", [](const PyLoader& self) { return self.box().loader()->plan(); });
  loader.def("epoch", [](const PyLoader& self) {
    return self.look([](const Iterator& iterator) { return iterator.epoch(); });
  });
  loader.def("state", &PyLoader::state);
  loader.def("restore", &PyLoader::restore);
  loader.def("set_epoch", &PyLoader::set_epoch);
  loader.def("step", &PyLoader::step, nb::sig("def step(self, step: int, /) -> Batch"));
  loader.def("stop", &PyLoader::stop);
  loader.def("worker_ids", &PyLoader::worker_ids, "Ids of the worker processes that are alive.");
  loader.def("close", &PyLoader::close);
  loader.def("report", [](const PyLoader& self) {
    return self.look([](const Iterator& iterator) { return iterator.report(); });
  });
  loader.def("ledger_entries", [](const PyLoader& self) {
    return entries_of(self.look([](const Iterator& it) { return it.ledger().entries(); }));
  });
  loader.def("ledger_count", [](const PyLoader& self) {
    return self.look([](const Iterator& iterator) { return iterator.ledger().count(); });
  });
  loader.def("ledger_text", [](const PyLoader& self) {
    return self.look([](const Iterator& iterator) { return iterator.ledger().text(); });
  });
}

}  // namespace penstock::python
