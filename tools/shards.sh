#!/usr/bin/env bash
# Runs a GoogleTest program in as many processes as there are cores, each with its share of the
# tests: tools/shards.sh PROGRAM [arguments]. Fails when one of them does.
set -u
shards=$(nproc)
jobs=()
for ((i = 0; i < shards; ++i)); do
  GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$i "$@" &
  jobs+=($!)
done
failed=0
for job in "${jobs[@]}"; do
  wait "$job" || failed=1
done
exit $failed
