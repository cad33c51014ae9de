"""The pages of the guide that need torch, Keras or TensorFlow, run with the real ones."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))
import doc_blocks  # noqa: E402

HAVING = tuple(name for name in ("torch", "keras", "tensorflow")
               if importlib.util.find_spec(name))
if os.environ.get("KERAS_BACKEND", "tensorflow") != "tensorflow":
    HAVING = tuple(name for name in HAVING if name != "tensorflow")


def make_photos(folder):
    """A folder of images in two classes, for the pages that read one called `photos`."""
    pixels = bytes(range(256)) * 75  # 80 x 80 x 3
    for number in range(150):
        path = folder / f"photos/{'cat' if number % 2 else 'dog'}/{number}.ppm"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"P6 80 80 255\n" + pixels[number:] + pixels[:number])


def needed(page):
    return {block.needs for block in doc_blocks.page_blocks(page) if block.needs}


@pytest.mark.parametrize("page", [page for page in doc_blocks.python_pages()
                                  if needed(page) & set(HAVING)])
def test_the_python_of_a_page_runs_with_its_libraries(page, tmp_path):
    make_photos(tmp_path)
    program = tmp_path / "page.py"
    program.write_text(doc_blocks.python_program(page, HAVING))
    done = subprocess.run([sys.executable, program], cwd=tmp_path, check=False, text=True,
                          capture_output=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert doc_blocks.not_printed(program.read_text(), done.stdout + done.stderr) == ""
