#pragma once
// A worker process that is none: the other end of its socket is held by a test, or by a thread.

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/thread.h"
#include "worker_pool.h"

namespace penstock::python {

/// What a worker does at its end: takes requests, answers with twice each number, or dies.
class FakeWorker {
 public:
  FakeWorker(int socket, const WorkerMemory& memory)
      : socket_(socket),
        inputs_{SharedMemory(dup(memory.inputs[0].descriptor())),
                SharedMemory(dup(memory.inputs[1].descriptor()))},
        results_{SharedMemory(dup(memory.results[0].descriptor())),
                 SharedMemory(dup(memory.results[1].descriptor()))} {}
  ~FakeWorker() { hang_up(); }
  FakeWorker(const FakeWorker&) = delete;
  FakeWorker& operator=(const FakeWorker&) = delete;

  void hang_up() {
    if (socket_ >= 0) close(std::exchange(socket_, -1));
  }
  /// The next request, those that were taken back included; nothing when none comes within
  /// `milliseconds` (for ever if negative) or the parent is gone.
  std::optional<Message> receive(int milliseconds = 0) const {
    Message message;
    auto got = Received::nothing;
    do {
      got = receive_message(socket_, message, milliseconds);
    } while (got == Received::nothing && milliseconds < 0);
    return got == Received::message ? std::optional(message) : std::nullopt;
  }
  /// False when the request was taken back.
  [[nodiscard]] bool begin(const Message& request) const {
    std::uint64_t number = request.number;
    return inputs_[request.slot].preface().waiting.compare_exchange_strong(number, 0);
  }
  [[nodiscard]] std::vector<std::uint64_t> numbers_in(const Message& request) {
    inputs_[request.slot].look_again(request.bytes);
    WireReader from(inputs_[request.slot], request.bytes);
    std::vector<std::uint64_t> numbers(request.rows);
    for (std::uint64_t& number : numbers) number = from.number();
    return numbers;
  }
  void answer(const Message& request) { reply(request, Word::made, request.rows, ""); }
  /// Answers `rows` rows; the next one raised `text`.
  void raise(const Message& request, std::uint64_t rows, const std::string& text) {
    reply(request, Word::raised, rows, text);
  }
  void say_ready() const { send_message(socket_, {}); }
  void say_cannot(const std::string& why) { reply({}, Word::cannot, 0, why); }
  /// Notes which row of the request it is at, as a process does that may die.
  void at_row(const Message& request, std::uint64_t row) {
    results_[request.slot].preface().row.store(row);
  }

 private:
  void reply(const Message& request, Word word, std::uint64_t rows, const std::string& text) {
    const auto numbers = numbers_of(request, rows);
    WireWriter to(results_[request.slot]);
    for (const std::uint64_t number : numbers) to.number(2 * number);
    if (!text.empty()) to.text(text);
    Message message;
    message.word = word;
    message.number = request.number;
    message.slot = request.slot;
    message.rows = rows;
    message.bytes = to.bytes();
    send_message(socket_, message);
  }
  std::vector<std::uint64_t> numbers_of(const Message& request, std::uint64_t rows) {
    auto numbers = rows > 0 ? numbers_in(request) : std::vector<std::uint64_t>();
    numbers.resize(rows);
    return numbers;
  }

  int socket_;
  std::array<SharedMemory, 2> inputs_;
  std::array<SharedMemory, 2> results_;
};

class FakeProcess final : public WorkerProcess {
 public:
  /// Runs in a thread while the process does, and ends the process when it returns.
  using Body = std::function<void(FakeWorker&)>;
  /// Without a body the test is the worker.
  explicit FakeProcess(Body body = nullptr) : body_(std::move(body)) {}
  ~FakeProcess() override { FakeProcess::stop(false); }
  FakeProcess(const FakeProcess&) = delete;
  FakeProcess& operator=(const FakeProcess&) = delete;

  void start(const WorkerMemory& memory) override {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
      throw ResourceError("no socket");
    worker_ = std::make_unique<FakeWorker>(ends[1], memory);
    {
      Lock lock(mutex_);
      socket_ = ends[0];
      ended_ = stopped_ = false;
    }
    ++starts;
    if (body_)
      thread_ = std::make_unique<Thread>("fake-worker", [this] {
        body_(*worker_);
        die();
      });
  }
  void send(const Message& message) override {
    Lock lock(mutex_);
    if (socket_ >= 0) send_message(socket_, message);
  }
  Received receive(Message& message) override { return receive_message(descriptor(), message, 0); }
  [[nodiscard]] int descriptor() const override {
    Lock lock(mutex_);
    return socket_;
  }
  std::optional<std::string> ended() override {
    Lock lock(mutex_);
    return ended_ ? std::optional<std::string>("was killed by a test") : std::nullopt;
  }
  void hang_up(bool) override {
    Lock lock(mutex_);
    if (socket_ >= 0) close(std::exchange(socket_, -1));
  }
  void stop(bool) override {
    hang_up(false);
    thread_.reset();
    worker_.reset();
    Lock lock(mutex_);
    ended_ = stopped_ = true;
  }
  [[nodiscard]] int id() const override {
    Lock lock(mutex_);
    return stopped_ ? -1 : 1;
  }

  /// The process ends by itself.
  void die() {
    {
      Lock lock(mutex_);
      ended_ = true;
    }
    worker_->hang_up();
  }
  [[nodiscard]] FakeWorker& worker() const { return *worker_; }
  int starts = 0;

 private:
  const Body body_;
  std::unique_ptr<FakeWorker> worker_;
  std::unique_ptr<Thread> thread_;
  mutable Mutex mutex_;
  int socket_ PENSTOCK_GUARDED_BY(mutex_) = -1;
  bool ended_ PENSTOCK_GUARDED_BY(mutex_) = true;
  bool stopped_ PENSTOCK_GUARDED_BY(mutex_) = true;  // and was waited for
};

/// A job whose results are twice its numbers.
class NumbersJob final : public WorkerJob {
 public:
  explicit NumbersJob(std::vector<std::uint64_t> numbers) : in(std::move(numbers)) {
    rows = in.size();
    out.resize(rows);
  }
  [[nodiscard]] std::optional<std::uint64_t> sample_id(std::size_t row) const override {
    return in[row];
  }
  void write(WireWriter& to, std::size_t first, std::size_t count) const override {
    for (std::size_t row = first; row < first + count; ++row) to.number(in[row]);
  }
  Result<void> read(WireReader& from, std::size_t first, std::size_t count) override {
    for (std::size_t row = first; row < first + count; ++row) out[row] = from.number();
    return {};
  }
  std::vector<std::uint64_t> in;
  std::vector<std::uint64_t> out;
};

class FakeHost final : public WorkerHost {
 public:
  void check_signals() override {}
  void rethrow(const std::string& sent) override { throw ConfigError(sent); }
  void warn_of_global_use(const std::string&) override {}
  bool forked() override { return false; }
};

}  // namespace penstock::python
