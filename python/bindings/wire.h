#pragma once
// How samples lie in the memory that this process and a worker process share, and the short
// messages that go with them. Both ends are this build; what is read is checked all the same,
// because the other end runs a user's native code and may have written anything.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "penstock/sample.h"

namespace penstock::python {

struct Preface;

/// Memory shared by descriptor (memfd), mapped whole; it grows and never shrinks, so that a look at
/// what was announced cannot fault. One end writes it at a time.
class SharedMemory {
 public:
  /// New memory with no name: nothing is left of it when the last descriptor is closed.
  SharedMemory();
  /// Memory that somebody else made; takes over the descriptor.
  explicit SharedMemory(int descriptor);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  [[nodiscard]] int descriptor() const { return descriptor_; }
  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] Preface& preface() const;
  /// At least so many bytes; `data` may move. Throws ResourceError when there are none left.
  void reserve(std::size_t bytes);
  /// Sees what the other end has added; throws InternalError when that is less than `bytes`.
  void look_again(std::size_t bytes);

 private:
  void map(std::size_t bytes);

  int descriptor_ = -1;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// All memories begin with this.
struct Preface {
  /// Results: which row of the request is being worked on, to be read after a death.
  std::atomic<std::uint64_t> row;
  /// Inputs: the number of the request that lies there, until the worker begins with it or whoever
  /// sent it takes it back, whichever comes first.
  std::atomic<std::uint64_t> waiting;
};
inline constexpr std::size_t kPrefaceBytes = 64;

class WireWriter {
 public:
  explicit WireWriter(SharedMemory& memory);
  void number(std::uint64_t value);
  void text(const std::string& value);
  /// Structure, dtypes, shapes and bytes; a structure that is that of the sample before is not
  /// written again.
  void sample(const Sample& sample);
  [[nodiscard]] std::size_t bytes() const { return at_; }

 private:
  std::byte* take(std::size_t bytes, std::size_t align);
  SharedMemory& memory_;
  std::size_t at_ = kPrefaceBytes;
  std::optional<Structure> before_;
};

class WireReader {
 public:
  /// Reads the first `bytes` bytes.
  WireReader(const SharedMemory& memory, std::size_t bytes);
  std::uint64_t number();
  std::string text();
  /// Its tensors look into the memory and own nothing.
  Sample sample();

 private:
  const std::byte* take(std::size_t bytes, std::size_t align);
  const SharedMemory& memory_;
  std::size_t bytes_;
  std::size_t at_ = kPrefaceBytes;
  Structure before_;
};

enum class Word : std::uint32_t {
  // To a worker
  samples,  // one call for each sample
  vector,   // one call for arrays of rows
  list,     // one call for a list of all samples
  // From a worker
  ready,       // the function is there
  cannot,      // it could not be made; text: why
  made,        // all results
  raised,      // results up to the row that raised, then the exception
  wrong_value  // results up to a row whose result is no sample, then message and remedy
};

/// One packet of the socket.
struct Message {
  Word word = Word::ready;
  std::uint32_t random = 0;   // a request: keys of generators come with the samples
  std::uint64_t number = 0;   // of the request, counted by whoever asks
  std::uint64_t slot = 0;     // 0 or 1: which memories it lies in and its results go to
  std::uint64_t rows = 0;     // asked for, or made
  std::uint64_t bytes = 0;    // of the memory in use
  std::uint64_t took_ns = 0;  // in the function
  std::uint64_t noticed = 0;  // 1: it draws from the global generators
};

enum class Received : std::uint8_t { message, nothing, gone };
/// Sends a message, with descriptors if any; false when the other end is gone.
bool send_message(int socket, const Message& message);
bool send_descriptors(int socket, const int* descriptors, std::size_t count);
/// Waits for at most `milliseconds`, for ever if negative.
Received receive_message(int socket, Message& message, int milliseconds);

}  // namespace penstock::python
