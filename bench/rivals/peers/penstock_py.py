"""penstock from Python, two threads: what a user of the package gets, in the peers' harness."""
import penstock as ps
from harness import *

def W1():
    chain = ps.image.decode().resize(64, 64).random_flip().random_brightness(.125).to_float()
    return ps.image_folder(f'{BENCH}/{PNG}').shuffle(seed=1).map(chain).batch(64), len(files()[0])

def W2():
    chain = ps.image.decode().random_resized_crop(224, 224).random_flip().normalize().channels_first()
    return ps.image_folder(f'{BENCH}/photos').repeat(4).shuffle(seed=1).map(chain).batch(64), len(files('photos', '.jpg', 4)[0])

ds, n = globals()[WORKLOAD]()
run('penstock, Python', '', 'threads=2', lambda: ps.Loader(ds, threads=2), lambda b: b['image'], n)
