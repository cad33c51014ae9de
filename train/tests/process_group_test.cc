// Two ranks as two threads of this process; whole processes are in command.py and workers.py.
#include <penstock/train/process_group.h>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <sys/socket.h>
#include <unistd.h>

#include <optional>

#include "base/report.h"
#include "base/thread.h"
#include "base/world.h"
#include "heard.h"

namespace penstock::train {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

thread_local std::string rank_here;

/// A port that was free just now.
std::uint16_t free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  ::close(fd);
  return ntohs(address.sin_port);
}

bool connects(const in_addr& to, std::uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr = to;
  address.sin_port = htons(port);
  const bool connected = ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  ::close(fd);
  return connected;
}

class ProcessGroupTest : public ::testing::Test {
 protected:
  ProcessGroupTest() : before_(set_process_environment(environment())) {}
  ~ProcessGroupTest() override { set_process_environment(before_); }

  Environment environment() {
    return [port = std::to_string(port_)](const std::string& name) -> std::optional<std::string> {
      if (name == "RANK" || name == "LOCAL_RANK") return rank_here;
      if (name == "WORLD_SIZE" || name == "LOCAL_WORLD_SIZE") return "2";
      if (name == "MASTER_ADDR") return "127.0.0.1";
      if (name == "MASTER_PORT") return port;
      return std::nullopt;
    };
  }

  /// Runs `first` and `second` as ranks 0 and 1, and returns what they threw.
  template <typename First, typename Second>
  std::vector<std::string> run(const ProcessGroupOptions& options, First first, Second second) {
    std::vector<std::string> thrown(2);
    const auto as_rank = [&](int rank, auto function) {
      rank_here = std::to_string(rank);
      try {
        ProcessGroup group(options);
        function(group);
      } catch (const std::exception& error) {
        thrown[static_cast<std::size_t>(rank)] = error.what();
        report(fmt::format("rank {} threw", rank));
      }
    };
    Thread other("rank 1", [&] { as_rank(1, second); });
    as_rank(0, first);
    other.join();
    return thrown;
  }

  const std::uint16_t port_ = free_port();
  Environment before_;
};

torch::Tensor ones() {
  return torch::ones({3}, torch::kFloat64);
}

TEST_F(ProcessGroupTest, ARankThatIsSlowAndAliveIsWaitedForAndReported) {
  const Heard heard;
  ProcessGroupOptions options;
  options.timeout = std::chrono::milliseconds(200);
  torch::Tensor sum = ones();
  const auto thrown = run(
      options,
      [&](ProcessGroup& group) {
        heard.wait_for("rank 1");  // as in a save that takes longer than the timeout
        group.sum("scores", ones());
      },
      [&](ProcessGroup& group) { group.sum("scores", sum); });
  EXPECT_THAT(thrown, ::testing::ElementsAre("", ""));
  EXPECT_EQ(sum.sum().item<double>(), 6);
  EXPECT_THAT(heard.text(), AllOf(HasSubstr("rank 1 has waited"), HasSubstr("in scores"),
                                  HasSubstr("all ranks are alive"), HasSubstr("rank 0 is in")));
}

TEST_F(ProcessGroupTest, RanksThatWaitForEachOtherAreAnErrorInTheEnd) {
  const Heard heard;
  ProcessGroupOptions options;
  options.timeout = options.alive_timeout = std::chrono::milliseconds(200);
  const auto thrown = run(
      options, [&](ProcessGroup&) { heard.wait_for("rank 1 threw"); },
      [&](ProcessGroup& group) { group.sum("scores", ones()); });
  EXPECT_EQ(thrown[0], "");
  EXPECT_THAT(thrown[1], AllOf(HasSubstr("all ranks are alive, but not at the same place"),
                               HasSubstr("no answer within")));
}

TEST_F(ProcessGroupTest, TheStoreListensOnTheAddressOfTheJobAlone) {
  std::vector<in_addr> outside;
  ifaddrs* all = nullptr;
  ASSERT_EQ(::getifaddrs(&all), 0);
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    const in_addr address = reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr;
    if ((ntohl(address.s_addr) >> 24U) != 127) outside.push_back(address);
  }
  ::freeifaddrs(all);
  // Every address of 127/8 is this machine, and only one of them is the job's.
  outside.push_back({htonl(INADDR_LOOPBACK + 1)});
  const auto thrown = run(
      {},
      [&](ProcessGroup& group) {
        group.sum("begin", ones());
        EXPECT_TRUE(connects({htonl(INADDR_LOOPBACK)}, port_));
        for (const in_addr& address : outside) EXPECT_FALSE(connects(address, port_));
        group.sum("end", ones());
      },
      [&](ProcessGroup& group) {
        group.sum("begin", ones());
        group.sum("end", ones());
      });
  EXPECT_THAT(thrown, ::testing::ElementsAre("", ""));
}

}  // namespace
}  // namespace penstock::train
