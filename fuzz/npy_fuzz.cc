// A file of NumPy, npy or npz, may be damaged or made to harm: any bytes are arrays whose rows can
// be read, or an error that says why. Nothing is read outside of the file, and no more is unpacked
// than allowed.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "penstock/error.h"
#include "sample/rows.h"
#include "source/npy_files.h"

namespace penstock {
namespace {

/// One file, "x", in memory.
class OneFile final : public Io {
 public:
  explicit OneFile(std::string_view file) : file_(file) {}
  Result<void> read_at(const FileHandle&, std::uint64_t offset, std::span<std::byte> out) override {
    if (offset > file_.size() || out.size() > file_.size() - offset) std::abort();
    if (!out.empty()) std::memcpy(out.data(), file_.data() + offset, out.size());
    return {};
  }
  Result<FolderEntry> look(const std::string&) override {
    FolderEntry entry;
    entry.bytes = file_.size();
    return entry;
  }
  Result<Bytes> read(const std::string&, std::uint64_t, std::uint64_t) override { std::abort(); }
  Result<Bytes> read_whole(const std::string&, const WholeFile&) override { std::abort(); }
  Result<std::string> read_text(const std::string&, std::uint64_t) override { std::abort(); }
  Result<std::vector<FolderEntry>> list(const std::string&) override { std::abort(); }
  Result<std::string> real_path(const std::string&) override { std::abort(); }
  Result<void> append(const std::string&, const std::string&) override { std::abort(); }
  Result<void> publish(const std::string&, std::string_view) override { std::abort(); }

 private:
  const std::string_view file_;
};

class OneFileReader final : public Reader {
 public:
  explicit OneFileReader(OneFile& file) : file_(file) {}
  Result<Bytes> get(const Read&, const ReadKey&) override { std::abort(); }
  Result<void> read_at(const FileHandle& file, std::uint64_t offset, std::span<std::byte> out,
                       const ReadKey&) override {
    return file_.read_at(file, offset, out);
  }
  Result<Bytes> get_file(const std::string&, std::uint64_t) override { std::abort(); }

 private:
  OneFile& file_;
};

void read_rows(const Source& source, Reader& reader) {
  Scratch scratch;
  const Context context(scratch, reader, nullptr);
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(source.size(), 8); ++i) {
    numbers.push_back(source.size() - 1 - i);
    numbers.push_back(i);
  }
  const Scratch::Frame frame(scratch);
  const ScratchBlock block(source.spec(), numbers.size(), scratch);
  const auto done = source.decode(numbers, {}, block.view(), context);
  const std::size_t rows = done ? numbers.size() : done.failure().row;
  std::size_t sum = 0;
  for (std::size_t row = 0; row < rows; ++row)
    for (const Tensor& leaf : read_row(block.view(), row).leaves())
      for (const std::byte byte : leaf.raw()) sum += std::to_integer<unsigned>(byte);
  volatile std::size_t sink = sum;  // every byte is readable
  (void)sink;
}

}  // namespace
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  penstock::OneFile file({reinterpret_cast<const char*>(data), size});
  try {
    const auto source = penstock::make_npy_files(file, {"x"}, {.bytes_max = 1U << 20});
    penstock::OneFileReader reader(file);
    penstock::read_rows(*source, reader);
  } catch (const penstock::ConfigError&) {
  }
  return 0;
}
