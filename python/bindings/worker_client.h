#pragma once
// The requests of one call to a worker pool: submit, wait, withdraw.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <variant>
#include <vector>

#include "worker_pool.h"

namespace penstock::python {

/// Rows of a job that one request asks for.
struct WorkerBlock {
  std::size_t first = 0;
  std::size_t rows = 0;
  int deaths = 0;  // of processes that had it
};

/// The answer to a request.
struct WorkerAnswer {
  WorkerBlock block;
  Message message;
  ResultsLease results;
};

/// The process ended before it answered; the block has to be submitted again.
struct WorkerDeath {
  WorkerBlock block;
  std::string how;
  std::size_t row = 0;        // of the block: the one it was at
  bool by_the_block = false;  // false: while it started, or at something that nobody wants
};

using WorkerEvent = std::variant<WorkerAnswer, WorkerDeath>;

/// Belongs to the thread that calls it. What is unanswered when it is destroyed is withdrawn.
class WorkerClient {
 public:
  WorkerClient(WorkerPool& pool, const WorkerJob& job);
  ~WorkerClient();
  WorkerClient(const WorkerClient&) = delete;
  WorkerClient& operator=(const WorkerClient&) = delete;

  /// Adds a request. It is sent by `wait`, when it has a place; those of lower rows go first.
  void submit(const WorkerBlock& block);
  /// Forgets requests for rows behind `row` that were not sent yet.
  void withdraw_after(std::size_t row);
  /// True when all requests are answered.
  [[nodiscard]] bool empty() const { return waiting_.empty() && sent_.empty(); }
  /// The first row of the oldest request.
  [[nodiscard]] std::size_t first_row() const;
  /// Sends what has a place, then blocks until something happened or there may be a place, for at
  /// most 20 ms; so it may return nothing. Throws ConfigError when a worker cannot load the
  /// function, ResourceError when no worker starts.
  std::vector<WorkerEvent> wait();

 private:
  /// A block that has a place.
  struct Request {
    WorkerBlock block;
    PooledWorker* worker = nullptr;
    bool follows = false;  // another call owns the worker until it is this request's turn
    bool sent = false;
    std::uint64_t number = 0;
    std::uint64_t slot = 0;
  };

  void take_back_for_idle();
  void send_waiting();
  void send_following(Request& request);
  void take_over();
  void send(Request& request);
  void write(Request& request);
  [[nodiscard]] Message message_for(const Request& request) const;
  void hear(std::size_t index, std::vector<WorkerEvent>& events);
  [[nodiscard]] std::string how_it_ended(PooledWorker& worker) const;
  void look_after_silent(std::vector<WorkerEvent>& events);
  void died(std::size_t index, const std::string& how, std::vector<WorkerEvent>& events);
  [[noreturn]] void cannot_start(PooledWorker& worker, const Message& message);

  WorkerPool& pool_;
  const WorkerJob& job_;
  const int bell_;
  const Ticket ticket_;
  std::deque<WorkerBlock> waiting_;  // without a place, in the order of their rows
  std::vector<Request> sent_;
  Nanoseconds looked_after_;
};

}  // namespace penstock::python
