#pragma once
// Test builds only (PENSTOCK_FAULTS): named fault points, features that can be switched off, and
// seeded yields. In other builds the macros expand to nothing.

#include <cstdint>
#include <map>
#include <string>

namespace penstock::fault {

/// Makes the point `name` fire on its `nth` hit from now (1: the next); 0 disarms it.
void arm(const std::string& name, std::uint64_t nth);
/// Arms points by name: "cut.twice:3,slab.allocate:1". Returns false if `text` has another form.
bool arm_listed(const std::string& text);
void disarm_all();
/// How often each point was reached since the last `disarm_all`.
std::map<std::string, std::uint64_t> hits();
/// True if the point fires now.
bool fires(const char* name);
/// Switches off the feature `name`, so that a test can be shown to fail without it; "" switches all
/// on again.
void switch_off(const std::string& name);
/// True if the feature is switched off. Costs one load if none is.
bool is_off(const char* name);
/// Yields at about one in four scheduling points, chosen by `seed`; 0 turns it off.
void set_yield_seed(std::uint64_t seed);
void maybe_yield();

}  // namespace penstock::fault

#ifdef PENSTOCK_FAULTS
#define PENSTOCK_FAULT(name) ::penstock::fault::fires(name)
#define PENSTOCK_OFF(name) ::penstock::fault::is_off(name)
#define PENSTOCK_SCHEDULE() ::penstock::fault::maybe_yield()
#else
#define PENSTOCK_FAULT(name) false
#define PENSTOCK_OFF(name) false
#define PENSTOCK_SCHEDULE() \
  do {                      \
  } while (false)
#endif
