"""The feature that each scenario needs: row -> the name that PENSTOCK_OFF in src/ switches off.

`make scenarios-off` breaks each promise in turn and expects the row to fail without it. Promises
that cannot be switched off by one word are mutants (tests/mutants) that name the row.
"""

FAULTS = {
    "a000_popping_sequence": "warn.asked_again",
    "a000_zero_padding": "pad.weight",
    "a000_scope": "scope.order",
    "a001_repeat_steps": "tail.short",
    "a002_map_batch_cache_prefetch": "cache.keep",
    "a003_inner_iterator": "warn.asked_again",
    "a003_slow_sequence": "run.ahead",
    "a003_brightness_range": "image.range",
    "a003_full_pipeline": "image.range",
    "a004_iterator_per_step": "warn.one_batch_iterators",
    "a004_slow_map": "run.ahead",
    "a004_prefetch": "run.ahead",
    "b_10_batches_4_replicas": "tail.short",
    "b_drop_remainder": "shuffle.anew",
    "b_short_generator": "feed.short_epoch",
    "b_steps_below_pass": "feed.goes_on",
    "c_shuffle_then_shard": "shuffle.shared",
    "c_cache_partial": "cache.keep",
    "c_cache_two_readers": "cache.keep",
    "c_random_cache": "warn.random_cache",
    "d_corrupt_png": "failure.file",
}
