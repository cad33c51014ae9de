// The other end of a worker pool: what a worker process does. Started by penstock/worker_main.py.
#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <utility>
#include <vector>

#include "areas.h"
#include "base/thread.h"
#include "functions.h"
#include "penstock/clock.h"
#include "values.h"
#include "wire.h"

namespace penstock::python {
namespace {

pid_t parent = 0;

/// The kernel tells of the end of the thread that started us; only that of the process matters.
void look_for_parent(int) {
  if (getppid() != parent) _exit(0);
}

/// Ends this process when its parent has: at once where that was killed, and after a moment in
/// which an idle interpreter ends by itself where the socket was closed.
void follow_parent(int socket, pid_t parent_id) {
  parent = parent_id;
  const int told = SIGRTMAX - 1;
  struct sigaction action{};
  action.sa_handler = look_for_parent;
  action.sa_flags = SA_RESTART;
  sigaction(told, &action, nullptr);
  prctl(PR_SET_PDEATHSIG, told);
  if (getppid() != parent) _exit(0);
  Thread("penstock-parent", [socket] {
    pollfd wait{socket, POLLRDHUP, 0};
    while (poll(&wait, 1, -1) <= 0 || (wait.revents & (POLLRDHUP | POLLHUP | POLLERR)) == 0) {
    }
    poll(nullptr, 0, 200);
    _exit(0);
  }).detach();
}

struct Calls {
  SampleCall one;
  Held fn;
};

/// Makes all that one request asks for; the reply says how far it came.
class Request {
 public:
  Request(const Calls& calls, const Message& asked, SharedMemory& inputs, SharedMemory& results)
      : calls_(calls), asked_(asked), from_(inputs, asked.bytes), results_(results), to_(results) {}

  /// With the interpreter held.
  Message answer() {
    Message reply;
    reply.number = asked_.number;
    reply.slot = asked_.slot;
    reply.word = Word::made;
    try {
      make(reply);
    } catch (nb::python_error& error) {
      reply.word = Word::raised;
      send_error(error);
    } catch (const ConfigError& error) {
      reply.word = Word::wrong_value;
      to_.text(error.message());
      to_.text(error.remedy());
    } catch (const std::exception& error) {
      reply.word = Word::wrong_value;
      to_.text(error.what());
      to_.text("");
    }
    reply.bytes = to_.bytes();
    return reply;
  }

 private:
  void make(Message& reply) {
    if (asked_.word == Word::samples) {
      for (; reply.rows < asked_.rows; ++reply.rows) {
        results_.preface().row.store(reply.rows);
        GeneratorKey key;
        if (asked_.random != 0) {
          const std::uint64_t low = from_.number();
          key.drawn = {low, from_.number()};
        }
        const Sample in = from_.sample();
        const auto began = Clock::real().now();
        const nb::object made = calls_.one.call(in, key);
        reply.took_ns += static_cast<std::uint64_t>((Clock::real().now() - began).count());
        to_.sample(sample_of(made));
      }
      return;
    }
    const auto began = Clock::real().now();
    const nb::object made =
        asked_.word == Word::list ? call_list() : call_rows(calls_.fn.get(), from_.sample());
    reply.took_ns = static_cast<std::uint64_t>((Clock::real().now() - began).count());
    to_.sample(sample_of(made));
    reply.rows = asked_.rows;
  }

  nb::object call_list() {
    std::vector<Sample> samples;
    for (std::uint64_t i = 0; i < asked_.rows; ++i) samples.push_back(from_.sample());
    return call_samples(calls_.fn.get(), samples);
  }

  void send_error(nb::python_error& error) {
    const nb::object sent =
        nb::module_::import_("penstock.travel").attr("sent")(nb::borrow(error.value()));
    const auto bytes = nb::cast<nb::bytes>(sent);
    to_.text({bytes.c_str(), bytes.size()});
  }

  const Calls& calls_;
  const Message& asked_;
  WireReader from_;
  SharedMemory& results_;
  WireWriter to_;
};

/// Answers until the socket is closed.
void serve(int socket, const std::array<int, 4>& memories, nb::handle fn, bool keyed, bool random,
           const std::string& title) {
  std::array inputs{SharedMemory(memories[0]), SharedMemory(memories[1])};
  std::array results{SharedMemory(memories[2]), SharedMemory(memories[3])};
  bool noticed = false;
  Calls calls{SampleCall(fn, {keyed, random, title}), hold(fn)};
  calls.one.when_noticed([&] { noticed = true; });
  if (!send_message(socket, {})) return;
  while (true) {
    Message asked;
    auto got = Received::nothing;
    {
      const Unlocked unlocked;
      while (got == Received::nothing) got = receive_message(socket, asked, -1);
    }
    if (got == Received::gone) return;
    SharedMemory& in = inputs[asked.slot % 2];
    std::uint64_t number = asked.number;
    if (!in.preface().waiting.compare_exchange_strong(number, 0)) continue;  // it was taken back
    in.look_again(asked.bytes);
    Message reply = Request(calls, asked, in, results[asked.slot % 2]).answer();
    reply.noticed = noticed ? 1 : 0;
    give_back_held();
    if (!send_message(socket, reply)) return;
  }
}

/// Says why there will be no answers.
void cannot_serve(int socket, int results_fd, const std::string& why) {
  SharedMemory results(results_fd);
  WireWriter to(results);
  to.text(why);
  Message message;
  message.word = Word::cannot;
  message.bytes = to.bytes();
  send_message(socket, message);
}

}  // namespace

void bind_worker_serve(nb::module_& module) {
  module.def("follow_parent", follow_parent);
  module.def("serve", serve);
  module.def("cannot_serve", cannot_serve);
}

}  // namespace penstock::python
