#include "worker_pool.h"

#include <sys/eventfd.h>

#include <set>
#include <utility>

#include "penstock/error.h"

namespace penstock::python {
namespace {

struct PoolList {
  Mutex mutex;
  std::set<WorkerPool*> all PENSTOCK_GUARDED_BY(mutex);
};
PoolList& pools() {
  static auto* const list = new PoolList;
  return *list;
}
std::atomic<bool> all_ended{false};

}  // namespace

WorkerPool::WorkerPool(WorkerPoolOptions options) : options_(std::move(options)) {
  Lock lock(pools().mutex);
  pools().all.insert(this);
}

WorkerPool::~WorkerPool() {
  {
    Lock lock(pools().mutex);
    pools().all.erase(this);
  }
  if (options_.host->forked()) {
    Lock lock(mutex_);
    for (auto& worker : workers_) static_cast<void>(worker.release());
    return;
  }
  end();
}

void WorkerPool::lease() {
  Lock lock(mutex_);
  ++leases_;
}

void WorkerPool::give_back() {
  {
    Lock lock(mutex_);
    if (--leases_ > 0) return;
  }
  end();
}

void WorkerPool::rest() {
  {
    Lock lock(mutex_);
    if (leases_ > 1) return;
  }
  end();
}

bool WorkerPool::ended_for_good() {
  return all_ended;
}

void WorkerPool::end_all() {
  all_ended = true;
  Lock lock(pools().mutex);
  for (WorkerPool* each : pools().all) each->end();
}

std::vector<int> WorkerPool::process_ids() const {
  Lock lock(mutex_);
  std::vector<int> ids;
  for (const auto& worker : workers_)
    if (worker->process->id() > 0) ids.push_back(worker->process->id());
  return ids;
}

void WorkerPool::end() {
  std::vector<std::unique_ptr<PooledWorker>> workers;
  {
    Lock lock(mutex_);
    stopping_ = true;
    for (const auto& [call, bell] : bells_) ring(call);
    while (!bells_.empty()) changed_.wait(mutex_);
    stopping_ = false;
    workers.swap(workers_);
    // All end at the same time; then each is waited for.
    for (const auto& worker : workers) {
      const ScheduledWorker& state = schedule_.worker(worker->index);
      const bool waits = state.process() == ScheduledWorker::Process::ready && state.owes() == 0;
      worker->process->hang_up(!waits);
    }
    schedule_.remove_workers();
  }
  for (const auto& worker : workers) worker->process->stop(true);
}

void WorkerPool::ring(Ticket call) {
  if (const auto found = bells_.find(call); found != bells_.end()) eventfd_write(found->second, 1);
}

void WorkerPool::wake() {
  for (const Ticket call : schedule_.to_wake()) ring(call);
}

Ticket WorkerPool::enter(int bell) {
  Lock lock(mutex_);
  const Ticket call = schedule_.enter();
  bells_[call] = bell;
  return call;
}

void WorkerPool::leave(Ticket call) {
  Lock lock(mutex_);
  schedule_.leave(call);
  bells_.erase(call);
  wake();
  changed_.notify_all();
}

void WorkerPool::want_place(Ticket call) {
  Lock lock(mutex_);
  schedule_.want_place(call);
}

void WorkerPool::want_no_place(Ticket call) {
  Lock lock(mutex_);
  schedule_.want_no_place(call);
  wake();
}

std::optional<WorkerPool::Place> WorkerPool::place_for(Ticket call) {
  Lock lock(mutex_);
  if (stopping_) return std::nullopt;
  if (workers_.empty()) {
    for (auto& process : options_.make_processes(options_.workers)) {
      workers_.push_back(std::make_unique<PooledWorker>());
      workers_.back()->index = workers_.size() - 1;
      workers_.back()->process = std::move(process);
    }
    schedule_.add_workers(workers_.size());
  }
  const auto place = schedule_.place_for(call);
  if (!place) return std::nullopt;
  return Place{workers_[place->worker].get(), place->follows, place->number, place->slot};
}

std::size_t WorkerPool::idle_workers_for(Ticket call) const {
  Lock lock(mutex_);
  return schedule_.older_wants_place(call) ? 0 : schedule_.idle_workers();
}

void WorkerPool::start_process(PooledWorker& worker) {
  if (all_ended) throw CancelledError("the interpreter ends");
  worker.process->start(worker.memory);
  Lock lock(mutex_);
  schedule_.worker(worker.index).process_started();
}

void WorkerPool::stop_process(PooledWorker& worker, bool kindly) {
  {
    Lock lock(mutex_);
    schedule_.worker(worker.index).process_stopped();
  }
  worker.process->stop(kindly);
}

std::uint64_t WorkerPool::free_slot(const PooledWorker& worker) {
  Lock lock(mutex_);
  while (true) {
    if (const auto slot = schedule_.worker(worker.index).free_slot()) return *slot;
    changed_.wait(mutex_);
  }
}

void WorkerPool::post(PooledWorker& worker, const Message& message) {
  worker.memory.inputs[message.slot].preface().waiting.store(message.number);
  worker.memory.results[message.slot].preface().row.store(0);
  worker.process->send(message);
}

std::uint64_t WorkerPool::send(PooledWorker& worker, Message message) {
  Lock lock(mutex_);
  message.number = schedule_.worker(worker.index).begin(message.slot);
  post(worker, message);
  wake();
  return message.number;
}

void WorkerPool::release(PooledWorker& worker, bool unanswered) {
  Lock lock(mutex_);
  const Ticket owner = schedule_.release(worker.index, unanswered, options_.clock->now());
  if (owner != 0) ring(owner);
  wake();
}

void WorkerPool::heard(const PooledWorker& worker, const Message& message) {
  Lock lock(mutex_);
  ScheduledWorker& state = schedule_.worker(worker.index);
  state.heard(message.number);
  if (message.word != Word::ready) return;
  start_deaths_ = 0;
  state.process_ready();
  wake();
}

bool WorkerPool::heard_owed_answer(const PooledWorker& worker) {
  Lock lock(mutex_);
  ScheduledWorker& state = schedule_.worker(worker.index);
  state.heard_owed_answer();
  wake();
  return state.owes() == 0;
}

bool WorkerPool::overdue(const PooledWorker& worker) const {
  Lock lock(mutex_);
  return schedule_.worker(worker.index).overdue(options_.clock->now(), kPatience);
}

bool WorkerPool::owes(const PooledWorker& worker) const {
  Lock lock(mutex_);
  return schedule_.worker(worker.index).owes() > 0;
}

bool WorkerPool::ready(const PooledWorker& worker) const {
  Lock lock(mutex_);
  return schedule_.worker(worker.index).process() == ScheduledWorker::Process::ready;
}

WorkerPool::Next WorkerPool::next(const PooledWorker& worker, std::uint64_t number) const {
  Lock lock(mutex_);
  const ScheduledWorker& state = schedule_.worker(worker.index);
  if (state.is_next(number)) return Next::waits;
  return state.state() == ScheduledWorker::State::claimed ? Next::unsent : Next::sent;
}

bool WorkerPool::send_next(PooledWorker& worker, const Message& message) {
  Lock lock(mutex_);
  ScheduledWorker& state = schedule_.worker(worker.index);
  if (!state.is_next(message.number)) return false;
  post(worker, message);
  state.send_next();
  return true;
}

bool WorkerPool::take_back_unbegun(PooledWorker& worker) {
  ScheduledWorker& state = schedule_.worker(worker.index);
  std::atomic<std::uint64_t>& waiting = worker.memory.inputs[1 - state.slot()].preface().waiting;
  std::uint64_t number = state.next_number();
  // The process does the same before it begins: whoever is first has the request.
  if (state.state() == ScheduledWorker::State::next_sent &&
      !waiting.compare_exchange_strong(number, 0))
    return false;
  state.take_back_next();
  return true;
}

bool WorkerPool::take_back(PooledWorker& worker, std::uint64_t number) {
  Lock lock(mutex_);
  return schedule_.worker(worker.index).is_next(number) && take_back_unbegun(worker);
}

bool WorkerPool::withdraw_next(PooledWorker& worker, std::uint64_t number) {
  Lock lock(mutex_);
  ScheduledWorker& state = schedule_.worker(worker.index);
  if (!state.is_next(number)) return false;
  if (!take_back_unbegun(worker)) state.abandon_next();
  wake();
  return true;
}

void WorkerPool::set_being_read(const PooledWorker& worker, std::uint64_t slot, bool being_read) {
  Lock lock(mutex_);
  schedule_.worker(worker.index).set_being_read(slot, being_read);
  if (being_read) return;
  wake();
  changed_.notify_all();
}

ResultsLease::ResultsLease(WorkerPool& pool, PooledWorker& worker, std::uint64_t slot)
    : pool_(&pool), worker_(&worker), slot_(slot) {
  pool_->set_being_read(*worker_, slot_, true);
}

ResultsLease::ResultsLease(ResultsLease&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)), worker_(other.worker_), slot_(other.slot_) {}

ResultsLease::~ResultsLease() {
  if (pool_ != nullptr) pool_->set_being_read(*worker_, slot_, false);
}

}  // namespace penstock::python
