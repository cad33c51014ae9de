// The keywords of Python's Loader: one list, which python/tests/test_arguments.py compares with the
// signatures of the package.
#include <cmath>
#include <string>

#include "areas.h"
#include "loaders.h"
#include "tails.h"

namespace penstock::python {
namespace {

struct LoaderKeyword {
  const char* name;
  void (*set)(LoaderOptions& options, nb::handle value);
};

template <typename T>
T as(nb::handle value) {
  return nb::cast<T>(value);
}

/// In this order; `None` leaves an option as it is. Types and ranges were checked in Python.
constexpr LoaderKeyword kKeywords[] = {
    {"world", [](LoaderOptions& to,
                 nb::handle value) { to.shares = Shares{as<std::uint32_t>(value), 0, 1}; }},
    {"rank",
     [](LoaderOptions& to, nb::handle value) {
       if (to.shares) to.shares->first = as<std::uint32_t>(value);
     }},
    {"shares_from",
     [](LoaderOptions& to, nb::handle value) { to.shares_from = as<std::string>(value); }},
    {"tail",
     [](LoaderOptions& to, nb::handle value) { to.tail = tail_of_name(as<std::string>(value)); }},
    {"empty",
     [](LoaderOptions& to, nb::handle value) {
       to.empty = as<std::string>(value) == "deliver" ? Empty::deliver : Empty::refuse;
     }},
    {"threads", [](LoaderOptions& to, nb::handle value) { to.threads = as<unsigned>(value); }},
    {"lookahead_bytes",
     [](LoaderOptions& to, nb::handle value) { to.lookahead_bytes = as<std::uint64_t>(value); }},
    {"on_error",
     [](LoaderOptions& to, nb::handle value) {
       to.on_error = as<std::string>(value) == "skip" ? OnError::skip : OnError::raise;
     }},
    {"ledger_file",
     [](LoaderOptions& to, nb::handle value) {
       const auto file = as<nb::bytes>(value);  // as the system has it
       to.ledger_file = {file.c_str(), file.size()};
     }},
    {"skip_limit",
     [](LoaderOptions& to, nb::handle value) { to.skip_limit = as<std::uint64_t>(value); }},
    {"stall_after",
     [](LoaderOptions& to, nb::handle value) {
       to.stall_after = std::chrono::milliseconds(std::llround(as<double>(value) * 1000));
     }},
    {"report_dir",
     [](LoaderOptions& to, nb::handle value) {
       const auto folder = as<nb::bytes>(value);
       to.report_dir = {folder.c_str(), folder.size()};
     }},
    {"stall_is_error",
     [](LoaderOptions& to, nb::handle value) { to.stall_is_error = as<bool>(value); }},
};

}  // namespace

LoaderOptions loader_options(const nb::dict& given) {
  LoaderOptions options;
  for (const LoaderKeyword& keyword : kKeywords)
    if (const nb::object value = given[keyword.name]; !value.is_none()) keyword.set(options, value);
  options.while_waiting = look_for_signals;
  return options;
}

void bind_loader_options(nb::module_& module) {
  module.def(
      "loader_keywords",
      [] {
        nb::list names;
        for (const LoaderKeyword& keyword : kKeywords) names.append(keyword.name);
        return names;
      },
      nb::sig("def loader_keywords() -> list[str]"),
      "The options of a Loader that the engine knows.");
}

}  // namespace penstock::python
