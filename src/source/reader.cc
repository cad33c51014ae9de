#include "source/reader.h"

#include <utility>

#include "trace/phases.h"

namespace penstock {
namespace {

class DirectReader final : public Reader {
 public:
  Result<Bytes> get(const Read& read, const ReadKey&) override {
    return read_now(Io::real(), read);
  }
  Result<void> read_at(const FileHandle& file, std::uint64_t offset, std::span<std::byte> out,
                       const ReadKey&) override {
    return Io::real().read_at(file, offset, out);
  }
  Result<Bytes> get_file(const std::string& path, std::uint64_t bytes_max) override {
    return read_now(Io::real(), {path, 0, UINT64_MAX, true, bytes_max, {}, {}});
  }
};

}  // namespace

Reader& direct_reader() {
  static DirectReader reader;
  return reader;
}

Result<Bytes> read_now(Io& io, const Read& read) {
  const trace::PhaseTimer timer(trace::Phase::read);
  if (read.file) {
    Bytes bytes(read.length);
    auto done = io.read_at(*read.file, read.offset, bytes);
    if (!done) return std::move(done.failure());
    return bytes;
  }
  if (!read.whole) return io.read(read.object, read.offset, read.length);
  const bool size_known = read.length != UINT64_MAX;
  return io.read_whole(read.object, {.bytes_max = read.bytes_max,
                                     .size = size_known ? std::optional(read.length) : std::nullopt,
                                     .within = read.within.get()});
}

}  // namespace penstock
