#pragma once
// Tables of other libraries, through Apache Arrow's C data interface: read in place, not copied.

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include <penstock/dataset.h>

// The interface is a binary one: every library declares the same structures.
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE
extern "C" {
struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  std::int64_t flags;
  std::int64_t n_children;
  ArrowSchema** children;
  ArrowSchema* dictionary;
  void (*release)(ArrowSchema*);
  void* private_data;
};
struct ArrowArray {
  std::int64_t length;
  std::int64_t null_count;
  std::int64_t offset;
  std::int64_t n_buffers;
  std::int64_t n_children;
  const void** buffers;
  ArrowArray** children;
  ArrowArray* dictionary;
  void (*release)(ArrowArray*);
  void* private_data;
};
}
#endif
#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE
extern "C" {
struct ArrowArrayStream {
  int (*get_schema)(ArrowArrayStream*, ArrowSchema* out);
  int (*get_next)(ArrowArrayStream*, ArrowArray* out);
  const char* (*get_last_error)(ArrowArrayStream*);
  void (*release)(ArrowArrayStream*);
  void* private_data;
};
}
#endif

namespace penstock {

/// What a null becomes: a number, a text, or for a list nothing, which is the empty list.
using NullValue = std::variant<std::monostate, double, std::string>;

/// A file that rows of a table come from.
struct ArrowFile {
  std::string path;
  std::uint64_t rows = 0;
};

struct ArrowOptions {
  std::string name = {};  // identifies the data in states and plans
  /// By column. A sample with a null in another column fails. The number of a list column is for
  /// nulls in its lists.
  std::map<std::string, NullValue> nulls = {};
  std::vector<ArrowFile> files =
      {};                           // where the rows come from, in order, for errors; may be empty
  std::string word = "from_arrow";  // the function that users called
};

/// The rows of a table, as a dict of its columns. Numbers, booleans, text, dates (as numbers),
/// lists (ragged) and lists of one size of these, structs (nested), and dictionary columns (their
/// values). Reads all batches of the stream and releases it. Throws ConfigError for other types,
/// and for an error of the stream.
Dataset from_arrow(ArrowArrayStream& stream, const ArrowOptions& options = {});
/// The same for one batch. Takes over both structures.
Dataset from_arrow(ArrowSchema& schema, ArrowArray& batch, const ArrowOptions& options = {});

}  // namespace penstock
