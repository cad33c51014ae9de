#pragma once
// Worker pools whose processes are Python interpreters. No thread holds the interpreter lock while
// it waits for a worker.

#include <memory>
#include <vector>

#include "penstock/dataset.h"
#include "worker_pool.h"

namespace penstock::python {

struct WorkerSetup {
  WorkerProgram program;
  unsigned workers = 1;
};

std::shared_ptr<WorkerPool> python_worker_pool(const WorkerSetup& setup);

/// Keeps the processes of all functions of a dataset until it is destroyed.
class WorkerLeases {
 public:
  explicit WorkerLeases(const Dataset& dataset);
  ~WorkerLeases();
  WorkerLeases(const WorkerLeases&) = delete;
  WorkerLeases& operator=(const WorkerLeases&) = delete;
  void rest() const;
  [[nodiscard]] std::vector<int> process_ids() const;

 private:
  std::vector<std::shared_ptr<WorkerPool>> pools_;
};

/// While it lives, the calling thread calls functions itself instead of asking workers.
class InThisProcess {
 public:
  explicit InThisProcess(bool so = true);
  ~InThisProcess();
  InThisProcess(const InThisProcess&) = delete;
  InThisProcess& operator=(const InThisProcess&) = delete;
  static bool now();

 private:
  bool before_;
};

}  // namespace penstock::python
