#!/usr/bin/env python3
"""Runs every program of examples/ and expects it to end well."""

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--folder", required=True, type=Path, help="of the built programs")
folder = parser.parse_args().folder
failed = 0
for source in sorted((ROOT / "examples").glob("*.cc")):
    done = subprocess.run([folder.resolve() / source.stem], capture_output=True, text=True,
                          timeout=300)
    print(f"{source.name}: {'ok' if done.returncode == 0 else done.stdout + done.stderr}")
    failed += done.returncode != 0
sys.exit(1 if failed else 0)
