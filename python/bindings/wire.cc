#include "wire.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "penstock/error.h"

namespace penstock::python {
namespace {

constexpr std::size_t kFirstBytes = 1 << 16;
constexpr std::size_t kDataAlign = 64;  // of arrays, as in a slab

[[noreturn]] void out_of_memory(std::size_t bytes) {
  throw ResourceError(fmt::format("no shared memory for {} bytes: {}", bytes, strerror(errno)), {},
                      "let a worker return less at a time, or raise the limit on memory (in a "
                      "container: --shm-size does not matter here, the memory limit does)");
}

[[noreturn]] void nonsense() {
  throw InternalError("what a worker process wrote is no sample: its memory was damaged");
}

std::size_t aligned(std::size_t at, std::size_t align) {
  return (at + align - 1) / align * align;
}

}  // namespace

SharedMemory::SharedMemory()
    : descriptor_(memfd_create("penstock", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
  if (descriptor_ < 0) out_of_memory(kFirstBytes);
  if (ftruncate(descriptor_, kFirstBytes) != 0 ||
      fcntl(descriptor_, F_ADD_SEALS, F_SEAL_SHRINK) != 0) {
    close(descriptor_);
    out_of_memory(kFirstBytes);
  }
  map(kFirstBytes);
}

SharedMemory::SharedMemory(int descriptor) : descriptor_(descriptor) {
  look_again(kPrefaceBytes);
}

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) munmap(data_, bytes_);
  if (descriptor_ >= 0) close(descriptor_);
}

Preface& SharedMemory::preface() const {
  return *reinterpret_cast<Preface*>(data_);
}

void SharedMemory::map(std::size_t bytes) {
  void* const moved = data_ == nullptr
                          ? mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0)
                          : mremap(data_, bytes_, bytes, MREMAP_MAYMOVE);
  if (moved == MAP_FAILED) out_of_memory(bytes);
  data_ = static_cast<std::byte*>(moved);
  bytes_ = bytes;
}

void SharedMemory::reserve(std::size_t bytes) {
  if (bytes <= bytes_) return;
  const std::size_t more = std::max(bytes, bytes_ + bytes_ / 2);
  // Pages are taken here, where running out is an error, and not later, where it is a signal.
  if (const int failed = posix_fallocate(descriptor_, 0, static_cast<off_t>(more)); failed != 0) {
    errno = failed;
    out_of_memory(more);
  }
  map(more);
}

void SharedMemory::look_again(std::size_t bytes) {
  if (bytes <= bytes_) return;
  struct stat now{};
  if (fstat(descriptor_, &now) != 0 || static_cast<std::size_t>(now.st_size) < bytes) nonsense();
  map(static_cast<std::size_t>(now.st_size));
}

namespace {

void put_structure(std::string& to, const Structure& structure) {
  to.push_back(static_cast<char>(structure.kind));
  if (structure.kind == Structure::Kind::leaf) return;
  const auto put = [&](std::uint32_t value) {
    to.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  put(static_cast<std::uint32_t>(structure.children.size()));
  for (const auto& [name, child] : structure.children) {
    put(static_cast<std::uint32_t>(name.size()));
    to += name;
    put_structure(to, child);
  }
}

class StructureReader {
 public:
  explicit StructureReader(std::string_view text) : text_(text) {}
  Structure read(int depth = 0) {
    constexpr int kDepthMax = 64;
    if (text_.empty() || depth > kDepthMax) nonsense();
    Structure structure;
    const auto kind = static_cast<std::uint8_t>(text_.front());
    if (kind > static_cast<std::uint8_t>(Structure::Kind::tuple)) nonsense();
    structure.kind = static_cast<Structure::Kind>(kind);
    text_.remove_prefix(1);
    if (structure.kind == Structure::Kind::leaf) return structure;
    const std::uint32_t children = size();
    for (std::uint32_t i = 0; i < children; ++i) {
      const std::uint32_t length = size();
      if (length > text_.size()) nonsense();
      std::string name(text_.substr(0, length));
      text_.remove_prefix(length);
      structure.children.emplace_back(std::move(name), read(depth + 1));
    }
    return structure;
  }

 private:
  std::uint32_t size() {
    std::uint32_t value = 0;
    if (text_.size() < sizeof value) nonsense();
    std::memcpy(&value, text_.data(), sizeof value);
    text_.remove_prefix(sizeof value);
    return value;
  }
  std::string_view text_;
};

std::size_t leaves_in(const Structure& structure) {
  if (structure.kind == Structure::Kind::leaf) return 1;
  std::size_t count = 0;
  for (const auto& [name, child] : structure.children) count += leaves_in(child);
  return count;
}

}  // namespace

WireWriter::WireWriter(SharedMemory& memory) : memory_(memory) {}

std::byte* WireWriter::take(std::size_t bytes, std::size_t align) {
  const std::size_t first = aligned(at_, align);
  memory_.reserve(first + bytes);
  at_ = first + bytes;
  return memory_.data() + first;
}

void WireWriter::number(std::uint64_t value) {
  std::memcpy(take(sizeof value, sizeof value), &value, sizeof value);
}

void WireWriter::text(const std::string& value) {
  number(value.size());
  if (!value.empty()) std::memcpy(take(value.size(), 1), value.data(), value.size());
}

void WireWriter::sample(const Sample& sample) {
  if (before_ && *before_ == sample.structure()) {
    number(0);
  } else {
    std::string structure;
    put_structure(structure, sample.structure());
    text(structure);
    before_ = sample.structure();
  }
  for (const Tensor& leaf : sample.leaves()) {
    number(static_cast<std::uint64_t>(leaf.dtype()) | leaf.shape().size() << 8);
    for (const std::int64_t size : leaf.shape()) number(static_cast<std::uint64_t>(size));
    const auto raw = leaf.raw();
    number(raw.size());
    if (!raw.empty()) std::memcpy(take(raw.size(), kDataAlign), raw.data(), raw.size());
  }
}

WireReader::WireReader(const SharedMemory& memory, std::size_t bytes)
    : memory_(memory), bytes_(bytes) {
  if (bytes > memory.bytes() || bytes < kPrefaceBytes) nonsense();
}

const std::byte* WireReader::take(std::size_t bytes, std::size_t align) {
  const std::size_t first = aligned(at_, align);
  if (first > bytes_ || bytes > bytes_ - first) nonsense();
  at_ = first + bytes;
  return memory_.data() + first;
}

std::uint64_t WireReader::number() {
  std::uint64_t value = 0;
  std::memcpy(&value, take(sizeof value, sizeof value), sizeof value);
  return value;
}

std::string WireReader::text() {
  const std::uint64_t size = number();
  if (size == 0) return {};
  return {reinterpret_cast<const char*>(take(size, 1)), size};
}

Sample WireReader::sample() {
  if (const std::string structure = text(); !structure.empty())
    before_ = StructureReader(structure).read();
  std::vector<Tensor> leaves(leaves_in(before_));
  for (Tensor& leaf : leaves) {
    const std::uint64_t kind = number();
    const auto dtype = static_cast<Dtype>(kind & 0xFF);
    if (dtype > Dtype::string || (kind >> 8) > 64) nonsense();
    Shape shape(kind >> 8);
    std::uint64_t values = 1;
    for (std::int64_t& size : shape) {
      size = static_cast<std::int64_t>(number());
      if (size < 0 || __builtin_mul_overflow(values, static_cast<std::uint64_t>(size), &values))
        nonsense();
    }
    const std::uint64_t bytes = number();
    if (!is_variable(dtype) &&
        (__builtin_mul_overflow(values, dtype_size(dtype), &values) || values != bytes))
      nonsense();
    // A tensor without values still has an address: one without was never made.
    const std::byte* const data = bytes > 0 ? take(bytes, kDataAlign) : memory_.data();
    leaf = Tensor::view(dtype, std::move(shape), {data, bytes}, nullptr);
  }
  return Sample::assemble(before_, std::move(leaves));
}

bool send_message(int socket, const Message& message) {
  while (true) {
    const auto sent = send(socket, &message, sizeof message, MSG_NOSIGNAL);
    if (sent == static_cast<ssize_t>(sizeof message)) return true;
    if (sent < 0 && errno != EINTR) return false;
  }
}

bool send_descriptors(int socket, const int* descriptors, std::size_t count) {
  constexpr std::size_t kMax = 5;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMax * sizeof(int))> control{};
  char byte = 0;
  iovec data{&byte, 1};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = CMSG_SPACE(count * sizeof(int));
  cmsghdr* const rights = CMSG_FIRSTHDR(&header);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(count * sizeof(int));
  std::memcpy(CMSG_DATA(rights), descriptors, count * sizeof(int));
  while (true) {
    if (sendmsg(socket, &header, MSG_NOSIGNAL) == 1) return true;
    if (errno != EINTR) return false;
  }
}

Received receive_message(int socket, Message& message, int milliseconds) {
  pollfd wait{socket, POLLIN, 0};
  const int ready = poll(&wait, 1, milliseconds);
  if (ready == 0 || (ready < 0 && errno == EINTR)) return Received::nothing;
  if (ready < 0) return Received::gone;
  const auto got = recv(socket, &message, sizeof message, MSG_DONTWAIT);
  if (got == static_cast<ssize_t>(sizeof message)) return Received::message;
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Received::nothing;
  return Received::gone;
}

}  // namespace penstock::python
