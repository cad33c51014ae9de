#!/usr/bin/env bash
# Usage: tools/lint.sh [full]
# Checks format and house rules; with `full` also runs clang-tidy over src/ and cli/, which takes
# minutes. All steps run even if one fails, so that one run shows everything.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2

if [[ $# -gt 1 || (-n ${1:-} && $1 != full) ]]; then
  echo "usage: tools/lint.sh [full]" >&2
  exit 2
fi
jobs=${LINT_JOBS:-2}
failed=()

# Prints the C++ files that exist, tracked or new, zero-terminated; arguments are git pathspecs.
sources() {
  local path
  git ls-files -zco --exclude-standard --deduplicate -- "$@" |
    while IFS= read -r -d '' path; do
      if [[ -f $path ]]; then printf '%s\0' "$path"; fi
    done
}

check() {
  local name=$1
  shift
  if ! "$@"; then
    failed+=("$name")
  fi
}

check_format() {
  sources '*.cc' '*.h' | xargs -0 -r clang-format-19 --dry-run -Werror
}

clang_tidy() {
  xargs -0 -r -n 1 -P "$jobs" clang-tidy-19 --quiet -p build/tidy "$@" 2> \
    >(grep -vE '^[0-9]+ warnings?( and [0-9]+ errors?)? generated' >&2)
}

check_clang_tidy() {
  # Configuring again is quick and finds files that are new since the last time.
  cmake --preset tidy >/dev/null || return 1
  local status=0
  sources 'src/*.cc' 'cli/*.cc' ':!*_test.cc' | clang_tidy || status=1
  # The check of optionals does not see that ASSERT_TRUE(value.has_value()) returns.
  sources 'src/*_test.cc' 'cli/*_test.cc' |
    clang_tidy --checks=-bugprone-unchecked-optional-access || status=1
  return "$status"
}

check format check_format
check tidy-self-test python3 tools/tidy.py --self-test
check tidy python3 tools/tidy.py
check scenarios-self-test python3 tools/scenarios.py --self-test
check scenarios python3 tools/scenarios.py --check
check mutants python3 tests/mutants/run.py --check
check benchmarks python3 tools/bench_page.py --check
if [[ ${1:-} == full ]]; then
  check clang-tidy check_clang_tidy
fi

if [[ ${#failed[@]} -gt 0 ]]; then
  echo "lint: failed: ${failed[*]}" >&2
  exit 1
fi
echo "lint: clean"
