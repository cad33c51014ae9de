// Replicas from Python: each runs the user's function in a thread of its own.
#include "penstock/strategy.h"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "areas.h"
#include "batches.h"
#include "callee.h"
#include "loaders.h"
#include "one_at_a_time.h"
#include "values.h"
#include "workers.h"

namespace penstock::python {
namespace {

/// A strategy with what must outlive it in Python.
class PyStrategy final : public Running {
 public:
  PyStrategy(const std::vector<std::string>& devices, bool one) {
    StrategyOptions options;
    options.while_waiting = [] {
      look_for_signals();
      // One that a replica's own function ran into ends the wait for the others, too.
      with_interpreter([] { throw_if_interrupted(); });
    };
    if (one) {
      strategy_ = std::make_unique<OneDeviceStrategy>(devices.front(), options);
    } else {
      strategy_ = std::make_unique<MirroredStrategy>(devices, options);
    }
  }
  ~PyStrategy() override {
    if (forked_while_running()) {
      static_cast<void>(strategy_.release());  // its threads are not in this process
      return;
    }
    const Unlocked unlocked;
    strategy_.reset();
  }
  void stop_threads() noexcept override {}
  [[nodiscard]] Strategy& get() const {
    check_may_run();
    return *strategy_;
  }

 private:
  std::unique_ptr<Strategy> strategy_;
};

class PyFeed final : public Running {
 public:
  Owned owned;

  PyFeed(Feed feed, std::unique_ptr<WorkerLeases> leases, Owned owns)
      : owned(std::move(owns)),
        leases_(std::move(leases)),
        feed_(std::make_shared<Feed>(std::move(feed))) {}
  ~PyFeed() override {
    if (forked_while_running()) {
      new std::shared_ptr<Feed>(std::move(feed_));  // see forked_while_running
      static_cast<void>(leases_.release());
      return;
    }
    const Unlocked unlocked;
    feed_.reset();
    leases_.reset();
  }
  /// One that a thread is inside is stopped and stays: that thread still uses it.
  void stop_threads() noexcept override {
    try {
      const Inside only(use_, std::try_to_lock);
      const std::shared_ptr<Feed> feed = only ? taken() : look();
      if (!only) feed->stop();
    } catch (const std::exception&) {  // nobody is left to hear it
    }
  }
  /// What any thread may ask, also while another one waits in next().
  [[nodiscard]] std::shared_ptr<Feed> look() const {
    Lock lock(mutex_);
    if (!feed_) throw CancelledError("the interpreter is exiting, and the feed with it");
    return feed_;
  }
  /// `body(feed)` when no other thread is in it, without the interpreter.
  template <typename Body>
  auto use(Body body) {
    check_may_run();
    const Unlocked unlocked;
    const Inside only(use_);
    return body(*look());
  }
  /// As `use`; a second thread is an error.
  template <typename Body>
  auto next(Body body) {
    if (in_next_.exchange(true))
      throw ConfigError("another thread waits in next() of this feed", {},
                        "take steps in one thread, or put a lock around next()");
    const FlagScope scope(in_next_);
    return use(body);
  }

  void stop() const {
    const Unlocked unlocked;
    look()->stop();
    leases_->rest();
  }

 private:
  class FlagScope {
   public:
    explicit FlagScope(std::atomic<bool>& flag) : flag_(flag) {}
    ~FlagScope() { flag_ = false; }
    FlagScope(const FlagScope&) = delete;
    FlagScope& operator=(const FlagScope&) = delete;

   private:
    std::atomic<bool>& flag_;
  };
  std::shared_ptr<Feed> taken() {
    Lock lock(mutex_);
    return std::exchange(feed_, nullptr);
  }

  std::unique_ptr<WorkerLeases> leases_;
  OneAtATime use_;
  std::atomic<bool> in_next_{false};
  mutable Mutex mutex_;
  std::shared_ptr<Feed> feed_ PENSTOCK_GUARDED_BY(mutex_);
};

/// `for step in feed`: what is left of the epoch.
class FeedLoop {
 public:
  explicit FeedLoop(nb::object owner) : owner_(std::move(owner)) {}

  nb::object next() {
    if (ended_) throw nb::stop_iteration();
    throw_if_interrupted();  // before a step is taken, which would be lost
    std::optional<Step> step = nb::inst_ptr<PyFeed>(owner_)->next([this](Feed& feed) {
      if (began_) return feed.next();
      began_ = true;  // what was not finished before ends here, once
      const auto first = feed.begin();
      return first != feed.end() ? std::optional(*first) : std::nullopt;
    });
    ended_ = !step;
    if (ended_) throw nb::stop_iteration();
    return nb::cast(std::move(*step));
  }

 private:
  nb::object owner_;
  bool began_ = false;
  bool ended_ = false;
};

/// The replica that the calling thread runs; valid during the call.
struct PyReplica {
  Replica* replica = nullptr;
  [[nodiscard]] Replica& get() const {
    if (replica == nullptr)
      throw ConfigError(
          "this replica has done its step: it is valid while run() calls the "
          "function");
    return *replica;
  }
};

/// What `run` handed to the function that this thread is in.
thread_local PyObject* running_replica = nullptr;

/// The Python object of a replica, for as long as its function runs.
class ReplicaScope {
 public:
  explicit ReplicaScope(Replica& replica) : object_(nb::cast(PyReplica{&replica})) {
    running_replica = object_.ptr();
  }
  ~ReplicaScope() {
    running_replica = nullptr;
    nb::inst_ptr<PyReplica>(object_)->replica = nullptr;
  }
  ReplicaScope(const ReplicaScope&) = delete;
  ReplicaScope& operator=(const ReplicaScope&) = delete;
  [[nodiscard]] const nb::object& object() const { return object_; }

 private:
  nb::object object_;
};

nb::object current_replica() {
  if (running_replica == nullptr) static_cast<void>(Replica::current());  // says what is wrong
  return nb::borrow(running_replica);
}

Reduce reduce_named(const std::string& name) {
  if (name == "sum") return Reduce::sum;
  if (name == "mean") return Reduce::mean;
  throw ConfigError(fmt::format("reduce: unknown operation \"{}\"", name), {},
                    "use \"sum\" or \"mean\"");
}

/// What replicas exchange: a value, how many samples it is over, whether it is their sum.
detail::Part part_of(nb::handle value, std::uint64_t count, bool is_sum) {
  return {tensor_of(value), count, is_sum, nullptr};
}

nb::object number_or_array(const Tensor& tensor) {
  return to_python(tensor.kept());
}

/// Parts for reduce and gather from lists that stand beside each other.
struct Parts {
  std::vector<detail::Part> parts;
  std::vector<detail::ShareCount> shares;
  Parts(const nb::list& values, const nb::list& counts, const nb::list& sums,
        const nb::list& masks) {
    const std::size_t size = nb::len(values);
    shares.resize(size);
    parts.resize(size);
    for (std::size_t r = 0; r < size; ++r) {
      shares[r].valid = nb::cast<std::uint64_t>(counts[r]);
      shares[r].mask = nb::cast<std::vector<std::uint8_t>>(masks[r]);
      shares[r].rows = shares[r].mask.empty() ? shares[r].valid : shares[r].mask.size();
      if (const nb::object value = values[r]; !value.is_none())
        parts[r] = part_of(value, shares[r].valid, nb::cast<bool>(sums[r]));
      parts[r].share = &shares[r];
    }
  }
};

nb::object reduce(const std::string& op, const nb::list& values, const nb::list& counts,
                  const nb::list& sums, const nb::list& masks, std::optional<std::int64_t> axis) {
  const Parts all(values, counts, sums, masks);
  const Reduce how = reduce_named(op);
  return number_or_array(axis ? detail::reduce_parts(how, all.parts, *axis)
                              : detail::reduce_parts(how, all.parts));
}

nb::object gather(const nb::list& values, const nb::list& counts, const nb::list& sums,
                  const nb::list& masks, std::int64_t axis) {
  const Parts all(values, counts, sums, masks);
  return number_or_array(detail::gather_parts(all.parts, axis));
}

/// Calls `fn(replica, share)` on each replica with rows; what it returns, None where none was.
nb::list run(const PyStrategy& self, nb::handle fn, const Step& step) {
  // A replica that does not return after an interrupt is abandoned with all that it touches.
  const auto shared = std::make_shared<std::vector<Held>>(step.shares().size());
  {
    const Held function = hold(fn);
    const Unlocked unlocked;
    self.get().run(
        [shared, function](Replica& replica, const Batch& share) {
          with_interpreter([&] {
            const ReplicaScope scope(replica);
            (*shared)[replica.local_id()] = hold(call_user(
                nb::handle(function.get()), nb::make_tuple(scope.object(), make_batch(share))));
          });
        },
        step);
  }
  const std::vector<Held>& results = *shared;
  throw_if_interrupted();
  nb::list made;
  for (const Held& result : results) {
    if (result) {
      made.append(nb::borrow(result.get()));
    } else {
      made.append(nb::none());
    }
  }
  return made;
}

nb::object next(PyFeed& self) {
  throw_if_interrupted();  // before a step is taken, which would be lost
  std::optional<Step> step = self.next([](Feed& feed) { return feed.next(); });
  if (!step) return nb::none();
  return nb::cast(std::move(*step));
}

DistributeOptions distribute_options(const nb::dict& given) {
  DistributeOptions options;
  if (const nb::object steps = given["steps_per_epoch"]; !steps.is_none())
    options.steps_per_epoch = nb::cast<std::uint64_t>(steps);
  options.restart = nb::cast<bool>(given["restart"]);
  options.short_epoch = nb::cast<bool>(given["short_epoch"]);
  options.loader = loader_options(given);
  options.loader.shares = {};
  return options;
}

nb::object distribute(const PyStrategy& self, const Owning<Dataset>& dataset,
                      const nb::dict& given) {
  const DistributeOptions options = distribute_options(given);
  std::optional<Feed> feed;
  auto leases = std::make_unique<WorkerLeases>(dataset);
  {
    const Unlocked unlocked;
    feed.emplace(self.get().distribute(dataset, options));
  }
  return make_object<PyFeed>(std::move(*feed), std::move(leases), dataset.owned);
}

nb::object distribute_from_function(const PyStrategy& self, nb::handle make,
                                    const nb::dict& given) {
  const DistributeOptions options = distribute_options(given);
  std::optional<Feed> feed;
  std::unique_ptr<WorkerLeases> leases;
  Owned owned;
  {
    const Unlocked unlocked;
    feed.emplace(self.get().distribute_from_function(
        [&](const InputContext& context) {
          return with_interpreter([&] {
            const nb::object made = call_user(make, nb::make_tuple(nb::cast(context)));
            const auto& dataset = nb::cast<const Owning<Dataset>&>(made);
            leases = std::make_unique<WorkerLeases>(dataset);
            owned = dataset.owned;
            return static_cast<const Dataset&>(dataset);
          });
        },
        options));
  }
  return make_object<PyFeed>(std::move(*feed), std::move(leases), std::move(owned));
}

nb::object all_reduce(const PyReplica& self, nb::handle op, nb::handle value, nb::handle given) {
  Replica& replica = self.get();
  const Reduce how = reduce_named(text_of(op));
  std::optional<std::uint64_t> count;
  if (!given.is_none()) count = whole_of("all_reduce", "count", given);
  const Tensor mine = tensor_of(value);
  Tensor all;
  {
    const Unlocked unlocked;
    all = count ? replica.all_reduce(how, Counted<Tensor>{mine, *count})
                : replica.all_reduce(how, mine);
  }
  return number_or_array(all);
}

nb::list masks_of(const Step& step) {
  nb::list masks;
  for (const Batch& share : step.shares()) {
    nb::list mask;
    if (share.valid_count() != share.rows())
      for (const std::uint8_t valid : share.valid()) mask.append(valid);
    masks.append(mask);
  }
  return masks;
}

void bind_step(nb::module_& module) {
  nb::class_<Step> step(module, "Step", "The shares of one global step, one per replica.");
  step.def_prop_ro("epoch", &Step::epoch);
  step.def_prop_ro("step", &Step::step);
  step.def_prop_ro("valid_count", &Step::valid_count);
  step.def_prop_ro("global_valid", &Step::global_valid);
  step.def_prop_ro("shares", [](const Step& self) {
    nb::list shares;
    for (const Batch& share : self.shares()) shares.append(make_batch(share));
    return shares;
  });
  step.def_prop_ro("counts", [](const Step& self) {
    nb::list counts;
    for (const Batch& share : self.shares()) counts.append(share.valid_count());
    return counts;
  });
  step.def("masks", masks_of);
  nb::class_<PyReplica> replica(module, "Replica", "The replica on which run() calls a function.");
  replica.def_prop_ro("id", [](const PyReplica& self) { return self.get().id(); });
  replica.def_prop_ro("local_id", [](const PyReplica& self) { return self.get().local_id(); });
  replica.def_prop_ro("num_replicas_in_sync",
                      [](const PyReplica& self) { return self.get().num_replicas_in_sync(); });
  replica.def_prop_ro("device", [](const PyReplica& self) { return self.get().device(); });
  replica.def_prop_ro(
      "count", [](const PyReplica& self) { return self.get().count(); },
      "Samples of this replica's share.");
  replica.def_prop_ro("cancelled", [](const PyReplica& self) { return self.get().cancelled(); });
  replica.def("barrier", [](const PyReplica& self) {
    Replica& own = self.get();
    const Unlocked unlocked;
    own.barrier();
  });
  replica.def("all_reduce", all_reduce, nb::arg("op").none(), nb::arg("value").none(),
              nb::arg("count") = nb::none(),
              nb::sig("def all_reduce(self, op: str, value: typing.Any, count: int | None = None) "
                      "-> typing.Any"),
              "The sum, or the mean over all samples, of every replica's value.");
  module.def("current_replica", current_replica, nb::sig("def current_replica() -> Replica"));
}

void bind_feed(nb::module_& module) {
  nb::class_<FeedLoop>(module, "FeedLoop", "The steps of one epoch.")
      .def(
          "__iter__", [](nb::handle self) { return nb::borrow(self); },
          nb::sig("def __iter__(self) -> FeedLoop"))
      .def("__next__", &FeedLoop::next, nb::sig("def __next__(self) -> Step"));
  nb::class_<PyFeed> feed(module, "Feed", nb::type_slots(owning_slots<PyFeed>()));
  feed.def(
      "iterate", [](nb::handle self) { return make_object<FeedLoop>(nb::borrow(self)); },
      nb::sig("def iterate(self) -> FeedLoop"));
  feed.def("next", next, nb::sig("def next(self) -> Step | None"));
  feed.def("plan", [](const PyFeed& self) { return self.look()->plan(); });
  feed.def("size", [](const PyFeed& self) { return self.look()->size(); });
  feed.def("epoch", [](const PyFeed& self) { return self.look()->epoch(); });
  feed.def("set_epoch", [](PyFeed& self, std::uint64_t epoch) {
    self.use([&](Feed& own) { own.set_epoch(epoch); });
  });
  feed.def("state", [](PyFeed& self) {
    return self.use([](const Feed& own) { return own.state().to_json(); });
  });
  feed.def("restore", [](PyFeed& self, const std::string& text) {
    self.use([&](Feed& own) { own.restore(State::parse(text)); });
  });
  feed.def("stop", [](const PyFeed& self) {
    if (!forked_while_running()) self.stop();
  });
  feed.def("report", [](const PyFeed& self) {
    const Unlocked unlocked;
    return self.look()->report();
  });
  feed.def("ledger_entries",
           [](const PyFeed& self) { return entries_of(self.look()->ledger().entries()); });
  feed.def("ledger_count", [](const PyFeed& self) { return self.look()->ledger().count(); });
  feed.def("ledger_text", [](const PyFeed& self) { return self.look()->ledger().text(); });
}

}  // namespace

void bind_strategy(nb::module_& module) {
  bind_step(module);
  bind_feed(module);
  nb::class_<InputContext>(module, "InputContext")
      .def_ro("pipeline", &InputContext::pipeline)
      .def_ro("pipelines", &InputContext::pipelines)
      .def_ro("num_replicas_in_sync", &InputContext::replicas)
      .def(
          "per_replica_batch",
          [](const InputContext& self, nb::handle batch) {
            return self.per_replica_batch(whole_of("per_replica_batch", "global_batch", batch));
          },
          nb::arg("global_batch").none(),
          nb::sig("def per_replica_batch(self, global_batch: int) -> int"));
  nb::class_<Scope>(module, "Scope")
      .def("leave", &Scope::leave)
      .def("try_leave", &Scope::try_leave);
  nb::class_<PyStrategy> strategy(module, "Strategy");
  strategy.def(nb::init<const std::vector<std::string>&, bool>());
  strategy.def("replicas",
               [](const PyStrategy& self) { return self.get().num_replicas_in_sync(); });
  strategy.def("devices", [](const PyStrategy& self) { return self.get().devices(); });
  strategy.def("scope", [](const PyStrategy& self) { return self.get().scope(); });
  strategy.def("distribute", distribute);
  strategy.def("distribute_from_function", distribute_from_function);
  strategy.def("run", run);
  module.def("reduce", reduce, nb::arg("op"), nb::arg("values"), nb::arg("counts"), nb::arg("sums"),
             nb::arg("masks"), nb::arg("axis").none());
  module.def("gather", gather);
}

}  // namespace penstock::python
