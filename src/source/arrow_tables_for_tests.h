#pragma once
// Arrow tables, written by hand.

#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "penstock/arrow.h"

namespace penstock::testing {

/// Counts the structures that were not released.
inline int& arrow_alive() {
  static int alive = 0;
  return alive;
}

/// An array and its schema, with the memory behind them.
struct ArrowPart {
  std::string format;
  std::string name = {};
  std::int64_t length = 0;
  std::vector<std::string> buffers = {};  // bytes; "\1" stands for none
  std::vector<ArrowPart> children = {};
  std::int64_t offset = 0;
  std::int64_t null_count = -1;
  std::vector<ArrowPart> dictionary = {};  // none or one
};

inline const std::string kNoBuffer = "\1";

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}
inline std::string bits_of(const std::vector<int>& bits) {
  std::string bytes((bits.size() + 7) / 8, '\0');
  for (std::size_t i = 0; i < bits.size(); ++i)
    if (bits[i] != 0) bytes[i / 8] = static_cast<char>(bytes[i / 8] | 1 << (i % 8));
  return bytes;
}

template <typename T>
ArrowPart numbers(std::string name, const char* format, const std::vector<T>& values,
                  std::string valid = kNoBuffer) {
  return {format,
          std::move(name),
          static_cast<std::int64_t>(values.size()),
          {std::move(valid), bytes_of(values)}};
}
inline ArrowPart texts(std::string name, const std::vector<std::string>& values,
                       std::string valid = kNoBuffer) {
  std::vector<std::int32_t> offsets{0};
  std::string all;
  for (const std::string& value : values) {
    all += value;
    offsets.push_back(static_cast<std::int32_t>(all.size()));
  }
  return {"u",
          std::move(name),
          static_cast<std::int64_t>(values.size()),
          {std::move(valid), bytes_of(offsets), all}};
}
inline ArrowPart table(std::vector<ArrowPart> columns, std::int64_t length,
                       std::int64_t offset = 0) {
  return {"+s", "", length, {kNoBuffer}, std::move(columns), offset};
}

namespace detail {

struct SchemaMemory {
  ArrowPart part;
  std::deque<ArrowSchema> children;
  std::vector<ArrowSchema*> pointers;
  ArrowSchema dictionary{};
};
struct ArrayMemory {
  std::vector<std::unique_ptr<std::uint64_t[]>> copies;  // aligned, and exactly as long as needed
  std::vector<const void*> buffers;
  std::deque<ArrowArray> children;
  std::vector<ArrowArray*> pointers;
  ArrowArray dictionary{};
};

/// Releases the parts of a structure, then its memory.
template <typename T, typename Memory>
void release(T* released) {
  auto* const memory = static_cast<Memory*>(released->private_data);
  for (T& child : memory->children)
    if (child.release != nullptr) child.release(&child);
  if (memory->dictionary.release != nullptr) memory->dictionary.release(&memory->dictionary);
  delete memory;
  released->release = nullptr;
  --arrow_alive();
}

}  // namespace detail

inline ArrowSchema schema_of(const ArrowPart& part) {
  auto* const memory = new detail::SchemaMemory{part, {}, {}, {}};
  ++arrow_alive();
  for (const ArrowPart& child : part.children) memory->children.push_back(schema_of(child));
  for (ArrowSchema& child : memory->children) memory->pointers.push_back(&child);
  if (!part.dictionary.empty()) memory->dictionary = schema_of(part.dictionary.front());
  return {memory->part.format.c_str(),
          memory->part.name.c_str(),
          nullptr,
          2,
          static_cast<std::int64_t>(memory->pointers.size()),
          memory->pointers.data(),
          part.dictionary.empty() ? nullptr : &memory->dictionary,
          detail::release<ArrowSchema, detail::SchemaMemory>,
          memory};
}

inline ArrowArray array_of(const ArrowPart& part) {
  auto* const memory = new detail::ArrayMemory;
  ++arrow_alive();
  for (const std::string& buffer : part.buffers) {
    if (buffer == kNoBuffer) {
      memory->buffers.push_back(nullptr);
      continue;
    }
    memory->copies.push_back(std::make_unique<std::uint64_t[]>(buffer.size() / 8 + 1));
    std::memcpy(memory->copies.back().get(), buffer.data(), buffer.size());
    memory->buffers.push_back(memory->copies.back().get());
  }
  for (const ArrowPart& child : part.children) memory->children.push_back(array_of(child));
  for (ArrowArray& child : memory->children) memory->pointers.push_back(&child);
  if (!part.dictionary.empty()) memory->dictionary = array_of(part.dictionary.front());
  return {part.length,
          part.null_count,
          part.offset,
          static_cast<std::int64_t>(memory->buffers.size()),
          static_cast<std::int64_t>(memory->pointers.size()),
          memory->buffers.data(),
          memory->pointers.data(),
          part.dictionary.empty() ? nullptr : &memory->dictionary,
          detail::release<ArrowArray, detail::ArrayMemory>,
          memory};
}

/// A stream of batches; fails with `error` after them if it is set.
struct ArrowStream {
  std::vector<ArrowPart> batches;
  std::string error = {};
  std::size_t next = 0;

  ArrowArrayStream stream() {
    ArrowArrayStream made{};
    made.private_data = this;
    made.get_schema = [](ArrowArrayStream* self, ArrowSchema* out) {
      *out = schema_of(static_cast<ArrowStream*>(self->private_data)->batches.front());
      return 0;
    };
    made.get_next = [](ArrowArrayStream* self, ArrowArray* out) {
      auto& own = *static_cast<ArrowStream*>(self->private_data);
      if (own.next == own.batches.size() && !own.error.empty()) return 5;
      *out = own.next == own.batches.size() ? ArrowArray{} : array_of(own.batches[own.next++]);
      return 0;
    };
    made.get_last_error = [](ArrowArrayStream* self) {
      return static_cast<ArrowStream*>(self->private_data)->error.c_str();
    };
    made.release = [](ArrowArrayStream* self) { self->release = nullptr; };
    return made;
  }
};

}  // namespace penstock::testing
