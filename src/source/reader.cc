#include "source/reader.h"

#include <utility>

#include "trace/phases.h"

namespace penstock {
namespace {

class AtOnce final : public Reader {
 public:
  Result<Bytes> get(const Read& read, const ReadKey&) override {
    return read_now(Io::real(), read);
  }
  Result<Bytes> get_file(const std::string& path) override {
    return Io::real().read_whole(path, std::nullopt);
  }
};

thread_local Reader* current = nullptr;

}  // namespace

Reader* set_reader(Reader* reader) {
  return std::exchange(current, reader);
}

Reader& current_reader() {
  static AtOnce at_once;
  return current != nullptr ? *current : at_once;
}

Result<Bytes> read_now(Io& io, const Read& read) {
  const trace::PhaseTimer timer(trace::Phase::read);
  if (!read.whole) return io.read(read.object, read.offset, read.length);
  const bool size_known = read.length != UINT64_MAX;
  return io.read_whole(read.object, size_known ? std::optional(read.length) : std::nullopt);
}

}  // namespace penstock
