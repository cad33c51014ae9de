"""Shared by the tests against real libraries. Each run has one Keras backend."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
for name in ("RANK", "WORLD_SIZE", "TF_CONFIG"):
    os.environ.pop(name, None)
