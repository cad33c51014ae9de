"""TurboLoader: W2 from a tar, its own source, with crop and flip fused; it decodes no PNG, so W1 goes through PIL."""
import numpy as np
import turboloader as tl
from harness import *

def W1():
    from PIL import Image
    p, y = files()
    class Pictures:
        def __len__(self):
            return len(p)
        def __getitem__(self, i):
            with Image.open(p[i]) as im:
                x = np.asarray(im.convert('RGB').resize((64, 64), Image.BILINEAR))
            x = x[:, ::-1] if np.random.rand() < .5 else x
            return np.clip(x * np.float32(1 / 255) + np.float32(np.random.uniform(-.125, .125)), 0, 1), int(y[i])
    return tl.MapDataLoader(Pictures(), batch_size=64, shuffle=True, num_workers=2), len(p)

def W2():
    return tl.DataLoader(f'{BENCH}/photos.tar', batch_size=64, num_workers=2, shuffle=True, image_size=224, output_format='numpy_chw',
                         transform=tl.ImageNetNormalize(), train_aug=True, antialias=True), len(files('photos', '.jpg', 4)[0])

dl, n = globals()[WORKLOAD]()
run('TurboLoader', tl.__version__, 'num_workers=2; W2 from a tar, fused train_aug, antialias', lambda: dl,
    lambda b: b[0] if isinstance(b, (tuple, list)) else b, n)
