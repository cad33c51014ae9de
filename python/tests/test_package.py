"""The package as a whole: names, stubs, pages."""

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import doc_blocks, run_page, run_program

import penstock as ps

ROOT = Path(__file__).resolve().parent.parent.parent


def test_every_name_exists_and_is_documented():
    for name in ps.__all__:
        assert hasattr(ps, name), name
    public = [name for name in vars(ps.Dataset) if not name.startswith("_")]
    assert not [name for name in public if not getattr(ps.Dataset, name).__doc__]


def test_the_version_is_that_of_the_repository():
    assert ps.__version__ == (ROOT / "VERSION").read_text().strip()


def test_stubs_match_the_module():
    done = subprocess.run([sys.executable, ROOT / "tools/stubs.py", "--check"], check=False,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    ast.parse((ROOT / "python/penstock/_native.pyi").read_text())


def test_errors_speak_python():
    with pytest.raises(ps.ConfigError, match=r"shuffle\(window=n\)"):
        ps.range(4).filter(lambda x: True).shuffle()
    with pytest.raises(ps.ConfigError, match="row_wise=True"):
        ps.range(4).batch(2).map(lambda x, rng: x)
    pixels = np.zeros((2, 4, 4, 3), np.uint8)
    with pytest.raises(ps.ConfigError, match="decode and of take the name of the field"):
        ps.from_tensor_slices({"a": pixels, "b": pixels}).map(ps.image.decode())
    with pytest.raises(ps.ConfigError, match="start the chain with decode"):
        ps.from_paths(["a"]).map(ps.image.of("image").resize(2, 2))
    with pytest.raises(ps.ConfigError, match=r"decode\(channels=3\)"):
        ps.from_paths(["a"]).map(ps.image.decode(channels=1).random_saturation(0.5, 1.5))
    with pytest.raises(ps.ConfigError, match=r"with of\(field\)"):
        ps.from_tensor_slices({"image": pixels}).map(ps.image.decode())


def test_errors_of_several_processes_speak_python(monkeypatch):
    for name, value in {"WORLD_SIZE": "2", "RANK": "0", "MASTER_ADDR": "localhost",
                        "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(name, value)
    drawn = ps.range(4).shuffle(seed="random").batch(2)
    strategy = ps.MirroredStrategy(["cpu:0"])
    with pytest.raises(ps.ConfigError, match='shuffle: seed="random" would draw another seed'):
        strategy.distribute(drawn)
    step = strategy.distribute(ps.range(4).batch(2)).next()
    values = strategy.run(lambda share: 1.0, step)
    for combine in (lambda: strategy.reduce("sum", values), lambda: strategy.gather(values)):
        with pytest.raises(ps.ConfigError, match="2 replicas of which 1 are in this.*ps.Loader in"):
            combine()


@pytest.mark.parametrize("page", doc_blocks.python_pages())
def test_the_python_of_a_page_runs(page, tmp_path):
    """The blocks of a page are one program; those that need other libraries run elsewhere."""
    if not doc_blocks.python_program(page).strip():
        pytest.skip("all blocks need other libraries: python/tests/frameworks/test_pages.py")
    code, out, error = run_page(page, tmp_path)
    assert code == 0, error
    assert doc_blocks.not_printed(doc_blocks.python_program(page), out + error) == ""


def test_the_page_of_peers_counts_what_is_tested():
    done = subprocess.run([sys.executable, ROOT / "tools/peers.py", "--check"], check=False,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_reference_matches_the_catalogue():
    done = subprocess.run([sys.executable, ROOT / "tools/reference.py", "--check"], check=False,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["torch", "keras"])
def test_a_missing_library_is_named_when_it_is_needed(name):
    code, out, error = run_program(f"""
        import sys
        sys.modules[{name!r}] = None        # as if it were not installed
        import penstock as ps
        try:
            ps.{name}
        except ImportError as error:
            print(error)
    """)
    assert code == 0, error
    assert out.startswith(f"ps.{name} needs {name}, which is not installed: pip install {name}")


def test_a_missing_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'tensorflow'"):
        ps.tensorflow
