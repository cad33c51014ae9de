"""Audio: folders and files of recordings, and the op that decodes them."""

import struct
import wave

import numpy as np
import pytest

import penstock as ps

RATE = 16_000

try:
    ps.audio.decode(rate=RATE)
except ps.ConfigError as missing:  # a build without libsndfile or libsoxr
    pytest.skip(str(missing), allow_module_level=True)


def write_wav(path, values, rate=RATE):
    """16-bit PCM, by the standard library; `values` has a row per frame, or is one channel."""
    values = np.asarray(values, np.int16)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1 if values.ndim == 1 else values.shape[1])
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(values.astype("<i2").tobytes())
    return path


def noise(frames, channels=None, seed=1):
    shape = frames if channels is None else (frames, channels)
    return np.random.default_rng(seed).integers(-32768, 32768, shape).astype(np.int16)


@pytest.fixture
def folder(tmp_path):
    """Recordings of 400, 500, ... frames in two classes."""
    for i in range(6):
        where = tmp_path / ("no" if i % 2 else "yes")
        where.mkdir(exist_ok=True)
        write_wav(where / f"{i}.wav", noise(400 + 100 * i, seed=i))
    return tmp_path


def decoded(path, **options):
    return ps.audio_files([path]).map(ps.audio.decode(**options)).sample(0)["audio"]


@pytest.mark.parametrize("frames", [0, 1, 999, 20_000])
@pytest.mark.parametrize("channels", [None, 1, 2, 6])
def test_16_bits_are_decoded_exactly(tmp_path, frames, channels):
    values = noise(frames, channels)
    got = decoded(write_wav(tmp_path / "a.wav", values), channels=None)
    assert got.dtype == np.float32 and got.shape == (frames, channels or 1)
    np.testing.assert_array_equal(got, values.reshape(got.shape) / np.float32(32768))


def test_one_channel_is_the_mean_and_a_vector(tmp_path):
    values = noise(700, 2)
    got = decoded(write_wav(tmp_path / "a.wav", values))
    assert got.shape == (700,)
    np.testing.assert_allclose(got, values.mean(axis=1) / 32768, atol=1e-7)


def test_a_folder_has_classes_and_recordings_of_any_length(folder):
    ds = ps.audio_folder(folder, with_path=True)
    assert isinstance(ds, ps.AudioFolder) and ds.class_names == ["no", "yes"] and len(ds) == 6
    batch = next(iter(ps.Loader(ds.map(ps.audio.decode()).batch(6))))
    assert batch["label"].tolist() == [0, 0, 0, 1, 1, 1]
    assert batch["audio"].lengths.tolist() == [500, 700, 900, 400, 600, 800]
    assert batch["path"][0] == "no/1.wav"
    padded = next(iter(ps.Loader(ds.map(ps.audio.decode()).padded_batch(6))))
    assert padded["audio"].shape == (6, 900)
    assert not padded["audio"][0, 500:].any() and padded["audio"][0, :500].any()


def test_buckets_of_similar_lengths(folder):
    ds = ps.audio_folder(folder).map(ps.audio.decode())
    buckets = ds.bucket_by_length([600], [2, 4], field="audio")
    sizes = [batch["audio"].shape for batch in ps.Loader(buckets)]
    assert sorted(sizes) == [(2, 500), (4, 900)]


def test_a_listed_folder_is_saved_and_loaded(folder, tmp_path):
    listed = ps.list_audio(folder)
    listed.save(tmp_path / "index")
    assert len(ps.audio_folder(listed)) == len(ps.audio_folder(folder, index=tmp_path / "index"))
    listed.check()
    (folder / "no" / "1.wav").unlink()
    with pytest.raises(ps.ConfigError, match="no/1.wav is missing"):
        listed.check()
    with pytest.raises(ps.ConfigError, match="pass them to list_audio"):
        ps.audio_folder(listed, labels=False)
    with pytest.raises(ps.ConfigError, match="audio_folder: no recordings in"):
        ps.audio_folder(folder, extensions=["flac"])


def test_a_crop_is_dense_and_random_by_sample_and_epoch(folder):
    files = ps.audio_folder(folder)

    def epochs(threads, size):
        ds = files.map(ps.audio.decode(frames=300)).batch(size)
        assert ds.element_spec["audio"].shape[-1] == 300
        loader = ps.Loader(ds, threads=threads)
        return [np.concatenate([batch["audio"] for batch in loader]) for _ in range(2)]

    first, second = epochs(1, 6)
    assert first.shape == (6, 300) and not np.array_equal(first, second)
    for threads, size in ((3, 2), (2, 4)):
        again = epochs(threads, size)
        np.testing.assert_array_equal(again[0], first)
        np.testing.assert_array_equal(again[1], second)
    for row, sample in zip(first, files.map(ps.audio.decode())):
        windows = np.lib.stride_tricks.sliding_window_view(sample["audio"], 300)
        assert (windows == row).all(axis=1).any()


def test_crops_and_padding(tmp_path):
    values = noise(1000)
    path = write_wav(tmp_path / "a.wav", values)
    exact = values / np.float32(32768)
    np.testing.assert_array_equal(decoded(path, frames=10, crop="start"), exact[:10])
    np.testing.assert_array_equal(decoded(path, frames=10, crop="center"), exact[495:505])
    np.testing.assert_array_equal(decoded(path, frames=1100), np.append(exact, np.zeros(100)))
    with pytest.raises(ps.SampleError, match="has 1000 frames, 1100 are needed"):
        decoded(path, frames=1100, pad=False)


def test_resampling_keeps_a_tone(tmp_path):
    tone = np.sin(2 * np.pi * 440 * np.arange(44_100) / 44_100)
    path = write_wav(tmp_path / "a.wav", np.round(16384 * tone), rate=44_100)
    got = decoded(path, rate=RATE)
    assert got.shape == (RATE,)
    wanted = np.sin(2 * np.pi * 440 * np.arange(RATE) / RATE) / 2
    np.testing.assert_allclose(got[500:-500], wanted[500:-500], atol=1e-4)
    spectrum = np.abs(np.fft.rfft(got))
    assert spectrum.argmax() == 440


def test_a_crop_of_a_resampled_recording_is_that_part_of_it(tmp_path):
    path = write_wav(tmp_path / "a.wav", noise(50_000), rate=44_100)
    whole = decoded(path, rate=RATE)
    assert whole.shape == (18_141,)  # 50,000 * 16,000 / 44,100, rounded up
    part = decoded(path, rate=RATE, frames=1000, crop="center")
    np.testing.assert_allclose(part, whole[8570:9570], atol=2e-6)


def float_wav(path, values):
    sound = np.asarray(values, "<f4").tobytes()
    path.write_bytes(b"RIFF" + struct.pack("<I", 36 + len(sound)) + b"WAVEfmt "
                     + struct.pack("<IHHIIHH", 16, 3, 1, RATE, 4 * RATE, 4, 32)
                     + b"data" + struct.pack("<I", len(sound)) + sound)
    return path


def test_floats_are_kept_unless_they_are_not_numbers(tmp_path):
    assert decoded(float_wav(tmp_path / "a.wav", [0, 2, -3])).tolist() == [0, 2, -3]
    for wrong in (np.nan, np.inf):
        with pytest.raises(ps.SampleError, match="frame 1 of the recording is"):
            decoded(float_wav(tmp_path / "b.wav", [0, wrong]))


def test_a_broken_file_is_named_or_skipped(folder):
    file = folder / "no" / "3.wav"
    file.write_bytes(file.read_bytes()[:-400])
    ds = ps.audio_folder(folder).map(ps.audio.decode(frames=100)).batch(6)
    with pytest.raises(ps.SampleError, match=r"500 of 700 frames(.|\n)*no/3.wav"):
        list(ps.Loader(ds))
    (folder / "no" / "1.wav").write_bytes(b"hello")
    loader = ps.Loader(ps.audio_folder(folder).map(ps.audio.decode(frames=100)).batch(6),
                       on_error="skip")
    assert [len(batch) for batch in loader] == [4]
    assert [entry["file"].rsplit("/", 1)[1] for entry in loader.ledger] == [
        "1.wav", "3.wav"]


def test_limits(tmp_path):
    path = write_wav(tmp_path / "a.wav", noise(1000))
    with pytest.raises(ps.SampleError, match="more than the limit of 999 values"):
        decoded(path, values_max=999)
    assert decoded(path, values_max=10, frames=10).shape == (10,)


def test_a_plan_contains_the_op(folder):
    ds = ps.audio_folder(folder).map(ps.audio.decode(frames=100, rate=8000, seed=3)).batch(2)
    text = ps.Loader(ds).plan.serialize()
    assert "audio_decode" in text and "audio_folder" in text


def test_wrong_fields_and_arguments(tmp_path):
    with pytest.raises(ps.ConfigError, match='no field "audio"'):
        ps.from_paths([tmp_path / "a.wav"]).map(ps.audio.decode())
    with pytest.raises(ps.ConfigError, match="not the bytes of a file"):
        ps.range(3).map(ps.audio.decode(""))
    with pytest.raises(ps.ConfigError, match='use "random", "center" or "start"'):
        ps.audio.decode(crop="left")
    with pytest.raises(ps.ConfigError, match="follow_links"):
        ps.audio_folder(tmp_path, follow_links="x")
    with pytest.raises(AttributeError, match="ps.audio_folder"):
        ps.audio_dataset_from_directory(tmp_path)
