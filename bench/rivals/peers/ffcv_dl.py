"""FFCV, from its own converted files (a class apart): W1 holds decoded pixels, W2 photos encoded again at quality 90."""
import numpy as np
from importlib.metadata import version
from ffcv.fields import IntField, RGBImageField
from ffcv.fields.basics import IntDecoder
from ffcv.fields.rgb_image import CenterCropRGBImageDecoder, RandomResizedCropRGBImageDecoder
from ffcv.loader import Loader, OrderOption
from ffcv.transforms import NormalizeImage, RandomBrightness, RandomHorizontalFlip, ToTensor, ToTorchImage
from harness import *
p, y = files(*((PNG, '.png', 1) if WORKLOAD == 'W1' else ('photos', '.jpg', 1)))
out = f'{BENCH}/{PNG if WORKLOAD == "W1" else "photos"}.beton'

class Pictures:
    def __len__(self):
        return len(p)
    def __getitem__(self, i):
        from PIL import Image
        return np.asarray(Image.open(p[i]).convert('RGB')), int(y[i])

if __name__ == '__main__':
    if not os.path.exists(out):
        from ffcv.writer import DatasetWriter
        f = RGBImageField(write_mode='raw') if WORKLOAD == 'W1' else RGBImageField(write_mode='jpg', jpeg_quality=90)
        DatasetWriter(out + '.part', {'x': f, 'y': IntField()}, num_workers=2).from_indexed_dataset(Pictures())
        os.rename(out + '.part', out)
    if WORKLOAD == 'W1':
        x = [CenterCropRGBImageDecoder((64, 64), 1), RandomHorizontalFlip(), RandomBrightness(.125),
             NormalizeImage(np.zeros(3), np.full(3, 255.), np.float32), ToTensor(), ToTorchImage()]
    else:
        x = [RandomResizedCropRGBImageDecoder((224, 224)), RandomHorizontalFlip(), NormalizeImage(MEAN * 255, STD * 255, np.float32), ToTensor(), ToTorchImage()]
    index = list(range(len(p))) * (1 if WORKLOAD == 'W1' else 4)
    dl = Loader(out, 64, num_workers=2, order=OrderOption.RANDOM, os_cache=True, indices=index, drop_last=False, pipelines={'x': x, 'y': [IntDecoder(), ToTensor()]})
    run('FFCV', version('ffcv'), 'decoded pixels' if WORKLOAD == 'W1' else 'photos encoded again at quality 90', lambda: dl, lambda b: b[0].numpy(), len(index))
