#include <penstock/train/process_group.h>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <csignal>
#include <deque>
#include <optional>
#include <set>

#include "base/report.h"
#include "base/world.h"
#include "gpu_sums.h"
#include "heartbeat.h"

namespace penstock::train {
namespace {

using Gloo = c10d::ProcessGroupGloo;
using std::chrono::milliseconds;

struct Meeting {
  std::string host;
  std::uint16_t port = 0;
  bool serves = false;  // this process serves the store
  std::string prefix;   // distinguishes this run from its restarts
};

Meeting find_meeting(const World& world, const ProcessGroupOptions& options) {
  const Environment environment = process_environment();
  Meeting meeting{options.address, options.port, false, ""};
  if (meeting.host.empty()) meeting.host = environment("MASTER_ADDR").value_or("");
  const std::string port = environment("MASTER_PORT").value_or("");
  if (meeting.port == 0 && !port.empty()) {
    const char* const end = port.data() + port.size();
    const auto [stop, error] = std::from_chars(port.data(), end, meeting.port);
    if (error != std::errc() || stop != end)
      throw ConfigError(fmt::format("process group: MASTER_PORT={} is not a port", port));
  }
  if (meeting.host.empty() || meeting.port == 0)
    throw ConfigError(
        fmt::format("process group: {}, but there is no address to meet at", world.text()), {},
        "start with torchrun, or set MASTER_ADDR and MASTER_PORT to a host and free port of rank "
        "0");
  // torchrun's agent has a store that outlives the workers.
  const bool agent = environment("TORCHELASTIC_USE_AGENT_STORE").value_or("") == "True";
  meeting.serves = world.rank == 0 && !agent;
  meeting.prefix = fmt::format("penstock/{}/{}", environment("TORCHELASTIC_RUN_ID").value_or(""),
                               environment("TORCHELASTIC_RESTART_COUNT").value_or("0"));
  // Without it nobody can guess the names of the job's entries.
  if (const auto secret = environment("PENSTOCK_JOB_SECRET")) meeting.prefix += "/" + *secret;
  return meeting;
}

/// Our own address on the route to `host`: a host name may stand for another of its networks.
std::string address_towards(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return "";
  std::string address;
  for (const addrinfo* one = found; one != nullptr && address.empty(); one = one->ai_next) {
    const int fd = ::socket(one->ai_family, SOCK_DGRAM, 0);
    sockaddr_storage own{};
    socklen_t size = sizeof own;
    std::array<char, NI_MAXHOST> text{};
    // No packet is sent: connecting a datagram socket only looks up the route.
    if (fd >= 0 && ::connect(fd, one->ai_addr, one->ai_addrlen) == 0 &&
        ::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) == 0 &&
        ::getnameinfo(reinterpret_cast<sockaddr*>(&own), size, text.data(), text.size(), nullptr, 0,
                      NI_NUMERICHOST) == 0)
      address = text.data();
    if (fd >= 0) ::close(fd);
  }
  ::freeaddrinfo(found);
  return address;
}

/// A socket that listens only on the address of `host`: by default torch's store listens on all
/// addresses of this machine. Nullopt if no address of `host` belongs to this machine, as behind a
/// Kubernetes service. Throws ConfigError if the port is in use.
std::optional<int> listen_at(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0)
    return std::nullopt;  // the store reports it
  std::optional<int> listening;
  int error = 0;
  for (const addrinfo* one = found; one != nullptr && !listening; one = one->ai_next) {
    const int fd = ::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int on = 1;
    if (fd >= 0 && ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
        ::bind(fd, one->ai_addr, one->ai_addrlen) == 0 && ::listen(fd, SOMAXCONN) == 0) {
      listening = fd;
    } else {
      if (errno != EADDRNOTAVAIL) error = errno;
      if (fd >= 0) ::close(fd);
    }
  }
  ::freeaddrinfo(found);
  if (!listening && error == EADDRINUSE)
    throw ConfigError(fmt::format("process group: port {} of {} is in use", port, host), {},
                      "set MASTER_PORT to a free one");
  if (!listening)
    report(
        fmt::format("process group: {} is not an address of this machine, so the store listens "
                    "on all of them",
                    host));
  return listening;
}

/// torch writes to sockets whose other end may be closed and relies on an error, as under Python,
/// which ignores the signal; otherwise a rank that dies would take the others with it.
void ignore_broken_pipes() {
  struct sigaction before{};
  if (::sigaction(SIGPIPE, nullptr, &before) == 0 && before.sa_handler == SIG_DFL)
    ::signal(SIGPIPE, SIG_IGN);
}

std::vector<std::uint8_t> bytes_of(const std::string& text) {
  return {text.begin(), text.end()};
}

std::string first_line(const char* what) {
  const std::string text = what;
  return text.substr(0, text.find('\n'));
}

}  // namespace

class ProcessGroup::Impl {
 public:
  explicit Impl(const ProcessGroupOptions& options) : options_(options), world_(find_world()) {
    if (world_.size == 1) return;
    ignore_broken_pipes();
    const Meeting meeting = find_meeting(world_, options);
    join(meeting);
    heartbeat_.emplace(world_.rank, world_.size, beat_store());
    control_ = connect(meeting, "control");
    sums_ = connect(meeting, "sums");
    sender_.emplace("process group", [this] { send_loop(); });
  }
  ~Impl() {
    {
      Lock lock(mutex_);
      stopping_ = true;
      changed_.notify_all();
    }
    sender_.reset();
    heartbeat_.reset();
    // Their destructors would wait for the lost rank.
    if (gave_up_) static_cast<void>(control_.release());
    if (gave_up_) static_cast<void>(sums_.release());
    if (gpus_aborted_) static_cast<void>(gpus_.release());
    if (gpus_) gpus_->shutdown();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  [[nodiscard]] const World& world() const { return world_; }

  std::vector<std::string> gather(const std::string& word, const std::string& text) {
    if (world_.size == 1) return {text};
    return guarded(word, [&] {
      // The word is sent along: ranks in different calls must not take each other's values.
      const std::string own = word + '\n' + text;
      const auto sizes = gather_rows(word, torch::tensor({static_cast<std::int64_t>(own.size())}));
      const std::int64_t longest = sizes.max().item<std::int64_t>();
      torch::Tensor row = torch::zeros({longest}, torch::kUInt8);
      std::memcpy(row.data_ptr(), own.data(), own.size());
      const auto all = gather_rows(word, row);
      std::vector<std::string> texts;
      for (std::int64_t rank = 0; rank < all.size(0); ++rank)
        texts.emplace_back(static_cast<const char*>(all[rank].const_data_ptr()),
                           static_cast<std::size_t>(sizes[rank].item<std::int64_t>()));
      return without_word(word, std::move(texts));
    });
  }

  /// Collective: sums of tensors on `device` go from GPU to GPU if every rank has its own, and
  /// through the CPU otherwise.
  void use_device(const torch::Device& device) {
    if (world_.size == 1 || gpus_) return;
    const std::vector<std::string> all = gather("GPUs of all ranks", gpu_identity(device));
    if (!std::ranges::none_of(all, &std::string::empty)) return;
    const std::set<std::string> distinct(all.begin(), all.end());
    if (distinct.size() < all.size()) {
      if (world_.rank == 0)
        report(
            "process group: several ranks share a GPU, so gradients go through the CPU; give "
            "every process its own GPU (--device cuda under torchrun does)");
      return;
    }
    guarded("connecting GPUs", [&] {
      gpus_ = connect_nccl(c10::make_intrusive<c10d::PrefixStore>("gpus", store_), world_.rank,
                           world_.size, device);
    });
  }

  void sum(c10d::Backend& group, const std::string& word, torch::Tensor values) const {
    const torch::NoGradGuard no_grad;
    const bool on_gpu = &group == gpus_.get();
    const torch::Tensor here = on_gpu ? values.detach() : values.detach().cpu();
    const torch::Tensor flat = here.contiguous().view({-1});
    const auto world = static_cast<std::int64_t>(world_.size);
    const std::int64_t each = (flat.numel() + world - 1) / world;
    // Each rank receives one part from all, adds in rank order, and sends the result to all.
    torch::Tensor parts = torch::zeros({each * world}, flat.options());
    parts.narrow(0, 0, flat.numel()).copy_(flat);
    torch::Tensor received = torch::empty_like(parts);
    std::vector<std::int64_t> even;
    wait(word, group.alltoall_base(received, parts, even, even, {}), on_gpu);
    const torch::Tensor rows = received.view({world, each});
    torch::Tensor total = rows[0].clone();
    for (std::int64_t rank = 1; rank < world; ++rank) total.add_(rows[rank]);
    wait(word, group._allgather_base(parts, total, {}), on_gpu);
    values.copy_(parts.narrow(0, 0, flat.numel()).view(values.sizes()));
  }
  void sum(const std::string& word, const torch::Tensor& values) {
    if (world_.size > 1) guarded(word, [&] { sum(*control_, word, values); });
  }

  void start_sum(const std::string& word, torch::Tensor values) {
    if (world_.size == 1) return;
    Lock lock(mutex_);
    jobs_.push_back({word, std::move(values)});
    ++unfinished_;
    changed_.notify_all();
  }
  void finish_sums() {
    if (world_.size == 1) return;
    std::exception_ptr failure;
    {
      Lock lock(mutex_);
      while (unfinished_ > 0) changed_.wait(mutex_);
      failure = std::exchange(failure_, nullptr);
    }
    if (failure) std::rethrow_exception(failure);
  }

  void broadcast(const std::string& word, torch::Tensor values) {
    if (world_.size == 1) return;
    guarded(word, [&] {
      std::vector<torch::Tensor> list = {values.detach().cpu().contiguous()};
      wait(word, control_->broadcast(list, {}));
      const torch::NoGradGuard no_grad;
      if (world_.rank != 0) values.copy_(list[0]);
    });
  }
  std::string broadcast(const std::string& word, const std::string& text) {
    if (world_.size == 1) return text;
    const auto size = static_cast<std::int64_t>(text.size());
    torch::Tensor count = torch::tensor({size});
    broadcast(word, count);
    torch::Tensor bytes = torch::zeros({count.item<std::int64_t>()}, torch::kUInt8);
    if (world_.rank == 0) std::memcpy(bytes.data_ptr(), text.data(), text.size());
    broadcast(word, bytes);
    return {static_cast<const char*>(bytes.const_data_ptr()),
            static_cast<std::size_t>(bytes.numel())};
  }

 private:
  struct Job {
    std::string word;
    torch::Tensor values;
  };

  void join(const Meeting& meeting) {
    c10d::TCPStoreOptions options;
    options.port = meeting.port;
    options.isServer = meeting.serves;
    if (meeting.serves) options.masterListenFd = listen_at(meeting.host, meeting.port);
    options.waitWorkers = false;
    options.timeout = options_.join_timeout;
    try {
      const auto store = c10::make_intrusive<c10d::TCPStore>(meeting.host, options);
      store_ = c10::make_intrusive<c10d::PrefixStore>(meeting.prefix, store);
      claim_rank();
    } catch (const c10::Error& error) {
      throw LostRankError(
          fmt::format("process group: {} cannot reach the store at {}:{}: {}", world_.text(),
                      meeting.host, meeting.port, first_line(error.what_without_backtrace())),
          {}, "is rank 0 running, and the address right?");
    }
  }

  /// Announces this rank, and waits for all others.
  void claim_rank() {
    const auto seat = [](std::uint32_t rank) { return fmt::format("seat/{}", rank); };
    if (store_->add(seat(world_.rank), 1) > 1)
      throw ConfigError(
          fmt::format("process group: rank {} of {} was started twice", world_.rank, world_.size),
          {}, "give every process its own rank");
    std::vector<std::string> all;
    for (std::uint32_t rank = 0; rank < world_.size; ++rank) all.push_back(seat(rank));
    try {
      store_->wait(all, options_.join_timeout);
    } catch (const c10::Error&) {
      std::string missing;
      for (std::uint32_t rank = 0; rank < world_.size; ++rank)
        if (!store_->check({all[rank]}))
          missing += fmt::format("{}{}", missing.empty() ? "" : ", ", rank);
      throw LostRankError(fmt::format("process group: after {:.0f} s these ranks of {} have not "
                                      "come: {}",
                                      std::chrono::duration<double>(options_.join_timeout).count(),
                                      world_.size, missing),
                          {}, "start them, or check their output");
    }
  }

  BeatStore beat_store() {
    const auto key = [](std::uint32_t rank) { return fmt::format("beat/{}", rank); };
    return {[store = store_, key](std::uint32_t rank, const std::string& value) {
              store->set(key(rank), bytes_of(value));
            },
            [store = store_, key, world = world_.size] {
              std::vector<std::string> all;
              for (std::uint32_t rank = 0; rank < world; ++rank) {
                if (!store->check({key(rank)})) {
                  all.emplace_back();
                  continue;
                }
                const auto bytes = store->get(key(rank));
                all.emplace_back(bytes.begin(), bytes.end());
              }
              return all;
            }};
  }

  c10::intrusive_ptr<Gloo> connect(const Meeting& meeting, const std::string& name) {
    const auto options = Gloo::Options::create();
    options->timeout = exchange_timeout();
    const auto interface = process_environment()("GLOO_SOCKET_IFNAME");
    const std::string address = address_towards(meeting.host, meeting.port);
    options->devices.push_back(interface         ? Gloo::createDeviceForInterface(*interface)
                               : address.empty() ? Gloo::createDefaultDevice()
                                                 : Gloo::createDeviceForHostname(address));
    const auto group = guarded("connecting " + name, [&] {
      return c10::make_intrusive<Gloo>(c10::make_intrusive<c10d::PrefixStore>(name, store_),
                                       static_cast<int>(world_.rank), static_cast<int>(world_.size),
                                       options);
    });
    // An exchange that Gloo has given up on cannot be waited for; `wait` has the limit.
    group->setTimeout(options_.alive_timeout + options_.timeout + std::chrono::minutes(1));
    return group;
  }

  /// Runs an exchange; errors are expressed in terms of ranks.
  template <typename Exchange>
  auto guarded(const std::string& word, Exchange exchange) -> decltype(exchange()) {
    heartbeat_->set_doing(word);
    try {
      return exchange();
    } catch (const c10::Error& error) {
      blame(word, error.what_without_backtrace());
    } catch (const std::runtime_error& error) {
      if (dynamic_cast<const Error*>(&error) != nullptr) throw;
      blame(word, error.what());
    }
  }
  [[noreturn]] void blame(const std::string& word, const char* what) const {
    throw_lost(word, heartbeat_->verdict(), first_line(what));
  }
  [[noreturn]] static void throw_lost(const std::string& word, const Verdict& verdict,
                                      const std::string& why) {
    throw LostRankError(fmt::format("{}: {} ({})", word, verdict.text, why), {},
                        "start the job again: it resumes from its last checkpoint");
  }

  /// The rest of the timeout, minus the time to find out which rank is missing.
  [[nodiscard]] milliseconds exchange_timeout() const {
    const milliseconds verdict = Heartbeat::kSilence + Heartbeat::kEvery;
    return std::max(options_.timeout - verdict, options_.timeout / 2);
  }
  /// Waits while every rank is alive. Rethrows errors of the exchange, and throws LostRankError.
  void wait(const std::string& word, const c10::intrusive_ptr<c10d::Work>& work,
            bool on_gpu = false) const {
    const auto began = std::chrono::steady_clock::now();
    const auto waited = [&] { return std::chrono::steady_clock::now() - began; };
    for (bool reported = false; !ends_within(*work, exchange_timeout(), on_gpu);) {
      const Verdict verdict = heartbeat_->verdict();
      if (work->isCompleted()) continue;  // completed meanwhile
      const double seconds = std::chrono::duration<double>(waited()).count();
      if (verdict.lost || waited() > options_.alive_timeout) {
        gave_up_ = true;
        throw_lost(word, verdict, fmt::format("no answer within {:.0f} s", seconds));
      }
      if (!std::exchange(reported, true))
        report(fmt::format("rank {} has waited for {:.0f} s in {}: {}; still waiting", world_.rank,
                           seconds, word, verdict.text));
    }
  }
  /// False while it is running; rethrows its error.
  static bool ends_within(c10d::Work& work, milliseconds timeout, bool on_gpu) {
    const auto wait_once = [&] { on_gpu ? wait_for_gpu(work, timeout) : void(work.wait(timeout)); };
    try {
      wait_once();
    } catch (const std::exception&) {
      if (!work.isCompleted()) return false;
      wait_once();  // rethrows its error, if any
    }
    return true;
  }

  [[nodiscard]] torch::Tensor gather_rows(const std::string& word, torch::Tensor row) const {
    torch::Tensor all =
        torch::empty({static_cast<std::int64_t>(world_.size), row.size(0)}, row.options());
    torch::Tensor flat = all.view({-1});
    wait(word, control_->_allgather_base(flat, row, {}));
    return all;
  }

  static std::vector<std::string> without_word(const std::string& word,
                                               std::vector<std::string> texts) {
    for (std::size_t rank = 0; rank < texts.size(); ++rank) {
      const std::size_t end = texts[rank].find('\n');
      const std::string its = texts[rank].substr(0, end);
      if (its != word)
        throw ConfigError(
            fmt::format("process group: this rank is in {}, rank {} in {}", word, rank, its), {},
            "every rank must run the same program on the same data");
      texts[rank].erase(0, end + 1);
    }
    return texts;
  }

  void send_loop() {
    while (true) {
      Job job;
      bool failed = false;
      {
        Lock lock(mutex_);
        while (jobs_.empty() && !stopping_) changed_.wait(mutex_);
        if (jobs_.empty()) return;
        job = std::move(jobs_.front());
        jobs_.pop_front();
        failed = failure_ != nullptr;
      }
      std::exception_ptr failure;
      if (!failed) {
        try {
          const bool on_gpu = gpus_ && job.values.is_cuda();
          guarded(job.word, [&] { sum(on_gpu ? *gpus_ : *sums_, job.word, job.values); });
        } catch (...) {
          failure = std::current_exception();
          if (gpus_) gpus_->abort();  // what still waits there occupies the GPU
          gpus_aborted_ = static_cast<bool>(gpus_);
        }
      }
      Lock lock(mutex_);
      if (failure) failure_ = failure;
      --unfinished_;
      changed_.notify_all();
    }
  }

  const ProcessGroupOptions options_;
  const World world_;
  c10::intrusive_ptr<c10d::Store> store_;
  std::optional<Heartbeat> heartbeat_;
  // Two, so that background sums never interfere with other exchanges.
  c10::intrusive_ptr<Gloo> control_;
  c10::intrusive_ptr<Gloo> sums_;
  c10::intrusive_ptr<c10d::Backend> gpus_;     // null: sums go through the CPU
  bool gpus_aborted_ = false;                  // by the sender
  mutable std::atomic<bool> gave_up_ = false;  // an exchange is running that will not end

  Mutex mutex_;
  Condition changed_;
  std::deque<Job> jobs_ PENSTOCK_GUARDED_BY(mutex_);
  std::size_t unfinished_ PENSTOCK_GUARDED_BY(mutex_) = 0;
  std::exception_ptr failure_ PENSTOCK_GUARDED_BY(mutex_);
  bool stopping_ PENSTOCK_GUARDED_BY(mutex_) = false;
  std::optional<Thread> sender_;
};

ProcessGroup::ProcessGroup(const ProcessGroupOptions& options)
    : impl_(std::make_unique<Impl>(options)) {}
ProcessGroup::~ProcessGroup() = default;

std::uint32_t ProcessGroup::rank() const {
  return impl_->world().rank;
}
std::uint32_t ProcessGroup::world() const {
  return impl_->world().size;
}
std::vector<std::string> ProcessGroup::gather(const std::string& word, const std::string& text) {
  return impl_->gather(word, text);
}
void ProcessGroup::use_device(const torch::Device& device) {
  impl_->use_device(device);
}
void ProcessGroup::sum(const std::string& word, torch::Tensor values) {
  impl_->sum(word, values);
}
void ProcessGroup::start_sum(const std::string& word, torch::Tensor values) {
  impl_->start_sum(word, std::move(values));
}
void ProcessGroup::finish_sums() {
  impl_->finish_sums();
}
void ProcessGroup::broadcast(const std::string& word, torch::Tensor values) {
  impl_->broadcast(word, std::move(values));
}
std::string ProcessGroup::broadcast(const std::string& word, const std::string& text) {
  return impl_->broadcast(word, text);
}

MultiWorkerMirroredStrategy::MultiWorkerMirroredStrategy(const std::vector<std::string>& devices,
                                                         const ProcessGroupOptions& options)
    : GroupHolder(options),
      Strategy("MultiWorkerMirroredStrategy", devices, {.coordinator = &(GroupHolder::group)}) {}

}  // namespace penstock::train
