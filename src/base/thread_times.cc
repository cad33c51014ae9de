#include "base/thread_times.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <ctime>

namespace penstock {

std::uint64_t cpu_time_here() {
  timespec time{};
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) != 0) return 0;
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(time.tv_nsec);
}

std::uint64_t run_delay_here() {
  const int file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  std::array<char, 128> text{};
  const ssize_t bytes = read(file, text.data(), text.size());
  close(file);
  if (bytes <= 0) return 0;
  // "time on a CPU, time waiting for one, number of time slices"
  const char* const end = text.data() + bytes;
  std::uint64_t on_cpu = 0;
  std::uint64_t waiting = 0;
  const auto first = std::from_chars(text.data(), end, on_cpu);
  if (first.ec != std::errc() || first.ptr == end) return 0;
  const auto second = std::from_chars(first.ptr + 1, end, waiting);
  return second.ec == std::errc() ? waiting : 0;
}

}  // namespace penstock
