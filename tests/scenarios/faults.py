"""Which promise each scenario rests on: row -> the name that PENSTOCK_OFF in src/ switches off.

`make scenarios-off` breaks each promise in turn and expects the row to fail without it.
"""

FAULTS = {
    "a000_zero_padding": "pad.weight",
    "a000_double_batch": "report",
    "a000_scope": "scope.order",
    "a001_batch_100_by_16": "tail.short",
    "a001_finite_generator": "stream.end",
    "a001_repeat_steps": "tail.short",
    "a002_shard_by_replica": "replica.ids",
    "a002_map_batch_cache_prefetch": "cache.keep",
    "a002_run_undistributed": "reduce.counts",
    "a004_iterator_per_step": "report",
    "a004_slow_map": "run.ahead",
    "a004_prefetch": "run.ahead",
    "a004_threads": "pool.shared",
    "b_103_by_16": "batch.loss_scale",
    "b_tail_of_one": "batch.loss_scale",
    "b_custom_mean": "reduce.counts",
    "b_10_batches_4_replicas": "tail.short",
    "b_custom_global": "batch.global_valid",
    "b_drop_remainder": "shuffle.anew",
    "b_cut_rule": "cut.balanced",
    "b_ghost_step": "stream.end",
    "b_short_generator": "feed.short_epoch",
    "b_steps_below_pass": "feed.goes_on",
    "b_peek": "stream.peek",
    "b_validation": "epoch.fresh",
    "c_shuffle_then_shard": "shuffle.shared",
    "c_cache_partial": "cache.keep",
    "c_cache_two_readers": "cache.keep",
    "c_random_cache": "report",
    "d_resume_replicas": "state.position",
    "d_resume_random": "random.key",
    "d_resume_fit": "state.position",
}
