"""Features of sound against theory, and sound files that are none."""

from __future__ import annotations

import struct
import sys
import wave
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import stft
from tiers import drawn

from fedsim.data.reading.sound import CENTRE, LEAST_POWER, SPREAD, LogMel, hertz, mel, mel_bands, read_wav
from fedsim.data.spoken_digits import SpokenDigits
from fedsim.errors import UserError

LOG_MEL = LogMel(rate_hz=8000, duration_s=1.0, window_s=0.025, hop_s=0.01, bands=40, lowest_hz=20.0, highest_hz=4000.0)


def tone(frequency_hz: float, amplitude: float = 0.5) -> np.ndarray:
    """One second at 8 kHz."""
    return np.round(32768 * amplitude * np.sin(2 * np.pi * frequency_hz * np.arange(8000) / 8000)).astype(np.int16)


def noise(samples: int = 8000) -> np.ndarray:
    return np.random.default_rng(1).integers(-8000, 8000, samples).astype(np.int16)


def write_wav(path, samples, *, rate_hz=8000, channels=1, sample_bytes=2):
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(sample_bytes)
        file.setframerate(rate_hz)
        file.writeframes(np.asarray(samples).tobytes())
    return path


# --- the mel scale and its bands ---


def test_a_thousand_hertz_are_a_thousand_mels():
    """The scale's definition (S. Young et al., The HTK Book, equation 5.13), to the rounding of its constants."""
    assert mel(1000.0) == pytest.approx(1000.0, rel=2e-5)
    assert mel(0.0) == 0.0


@given(st.floats(0, 20_000))
def test_hertz_undoes_mel(frequency_hz):
    assert hertz(mel(frequency_hz)) == pytest.approx(frequency_hz, abs=1e-8)


@pytest.mark.parametrize(("bands", "fft_length", "highest_hz"), [(40, 256, 4000.0), (23, 512, 3400.0)])
def test_the_weights_of_a_frequency_between_the_outer_peaks_add_up_to_one(bands, fft_length, highest_hz):
    weights = mel_bands(bands, rate_hz=8000, fft_length=fft_length, lowest_hz=20, highest_hz=highest_hz)
    peaks = hertz(np.linspace(mel(20.0), mel(highest_hz), bands + 2))[1:-1]
    frequencies = np.arange(fft_length // 2 + 1) * 8000 / fft_length
    between = (frequencies >= peaks[0]) & (frequencies <= peaks[-1])
    assert between.sum() > 100
    assert weights.sum(axis=0)[between] == pytest.approx(1.0, abs=1e-12)
    assert (weights.sum(axis=0)[(frequencies <= 20) | (frequencies >= highest_hz)] == 0).all()
    assert weights.min() >= 0


def test_a_band_without_a_frequency_is_refused():
    with pytest.raises(UserError, match=r"bands=128: band \d+ lies between two of the frequencies .* \(31\.25 Hz\)"):
        mel_bands(128, rate_hz=8000, fft_length=256, lowest_hz=20, highest_hz=4000)


# --- short-time spectra ---


def test_the_spectra_are_those_of_scipy():
    """scipy.signal.stft with a periodic Hann window, scaled by its sum, without padding or detrending."""
    clip = noise()
    _, _, expected = stft(
        clip / 32768, 8000, "hann", nperseg=200, noverlap=120, nfft=256, boundary=None, padded=False, scaling="spectrum"
    )
    assert LOG_MEL.power(clip) == pytest.approx(np.abs(expected.T) ** 2, rel=1e-9, abs=1e-20)


@pytest.mark.parametrize("amplitude", [0.1, 0.9])
def test_a_sine_has_half_its_amplitude_squared_where_it_is(amplitude):
    """1000 Hz is frequency 32 of 128; the mirror image at -1000 Hz is 64 frequencies away and gives 1e-5 at most."""
    power = LOG_MEL.power(tone(1000.0, amplitude))
    assert power[:, 32] == pytest.approx((amplitude / 2) ** 2, rel=1e-3)
    assert (power.argmax(axis=1) == 32).all()


@drawn(30)
@given(st.floats(100, 3500))
def test_a_tone_is_loudest_in_the_band_that_is_nearest(frequency_hz):
    """Within one band: frequencies that a window tells apart are 31 Hz apart, bands from 35 Hz on."""
    peaks = np.linspace(mel(20.0), mel(4000.0), 42)[1:-1]
    loudest = LOG_MEL.features(tone(frequency_hz))[0].mean(axis=1).argmax()
    assert abs(int(loudest) - int(np.abs(peaks - mel(frequency_hz)).argmin())) <= 1


def test_twice_the_amplitude_is_four_times_the_power():
    quiet, loud = LOG_MEL.features(noise()), LOG_MEL.features((2 * noise()).astype(np.int16))
    audible = quiet > -1.0  # where LEAST_POWER, at -2, does not count
    assert audible.mean() > 0.9
    assert (loud - quiet)[audible] == pytest.approx(np.log(4) / SPREAD, abs=0.01)


def test_silence_is_the_least_power_everywhere():
    features = LOG_MEL.features(np.zeros(8000, np.int16))
    assert (features.shape, features.dtype) == ((1, 40, 98), np.float32)
    assert features == pytest.approx((np.log(LEAST_POWER) - CENTRE) / SPREAD, abs=1e-6)
    assert 10 * np.log10(LEAST_POWER) == pytest.approx(-100)


def test_a_sound_that_is_one_hop_late_is_one_frame_late():
    early, late = LOG_MEL.features(noise()), LOG_MEL.features(np.concatenate([np.zeros(80, np.int16), noise()]))
    assert np.array_equal(late[..., 1:], early[..., :-1])


def test_frames_are_the_windows_that_fit():
    """1 + floor((8000 - 200) / 80) = 98; a window as long as the clip fits once."""
    assert LOG_MEL.frames == 98
    assert replace(LOG_MEL, window_s=1.0).frames == 1
    assert replace(LOG_MEL, rate_hz=16_000).frames == 98


def test_a_clip_is_cut_or_filled_to_its_length():
    long = noise(9000)
    assert np.array_equal(LOG_MEL.features(long), LOG_MEL.features(long[:8000]))
    filled = np.concatenate([long[:3000], np.zeros(5000, np.int16)])
    assert np.array_equal(LOG_MEL.features(long[:3000]), LOG_MEL.features(filled))


def test_features_depend_on_all_their_options():
    changes = ({"duration_s": 0.5}, {"window_s": 0.03}, {"hop_s": 0.02}, {"bands": 20}, {"lowest_hz": 50.0})
    said = [SpokenDigits(**options).feature_options for options in ({}, *changes, {"highest_hz": 3000.0})]
    assert all(said.count(one) == 1 for one in said)


# --- WAV files ---


def test_a_wav_file_is_read_sample_by_sample(tmp_path):
    assert np.array_equal(read_wav(write_wav(tmp_path / "a.wav", noise(100)), rate_hz=8000), noise(100))


def riff(parts: bytes) -> bytes:
    return b"RIFF" + struct.pack("<I", 4 + len(parts)) + b"WAVE" + parts


ODD_PART = b"LIST" + struct.pack("<I", 3) + b"abc\0"  # parts begin at even places


def test_other_parts_of_a_wav_file_are_passed_over(tmp_path):
    plain = write_wav(tmp_path / "a.wav", noise(100)).read_bytes()
    (tmp_path / "b.wav").write_bytes(riff(ODD_PART + plain[12:] + ODD_PART))
    assert np.array_equal(read_wav(tmp_path / "b.wav", rate_hz=8000), noise(100))


def test_an_extensible_form_is_read_where_the_standard_library_reads_it(tmp_path):
    plain = write_wav(tmp_path / "a.wav", noise(100)).read_bytes()
    guid = struct.pack("<H", 1) + b"\0\0\0\0\x10\0\x80\0\0\xaa\0\x38\x9b\x71"
    form = struct.pack("<H", 0xFFFE) + plain[22:36] + struct.pack("<HHI", 22, 16, 4) + guid
    (tmp_path / "b.wav").write_bytes(riff(b"fmt " + struct.pack("<I", len(form)) + form + plain[36:]))
    if sys.version_info < (3, 12):
        with pytest.raises(UserError, match="unknown format: 65534.*; save it as WAV, mono, 16-bit PCM"):
            read_wav(tmp_path / "b.wav", rate_hz=8000)
        return
    assert np.array_equal(read_wav(tmp_path / "b.wav", rate_hz=8000), noise(100))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda b: b[:-10], "ends after 190 of the 200 bytes of its sound"),
        (lambda b: b[:30], "is no WAV file that can be read .it ends too early"),
        (lambda b: b"", "is no WAV file"),
        (lambda b: b[:20] + b"\x03\x00" + b[22:], "unknown format: 3"),
        (lambda b: b[:22] + b"\x02\x00" + b[24:], "has 2 channels, and one is needed"),
        (lambda b: b[:24] + b"\x44\xac\x00\x00" + b[28:], "has 44100 samples per second, and 8000 are needed"),
        (lambda b: b[:34] + b"\x08\x00" + b[36:], "has samples of 8 bits"),
        (lambda b: b[:40] + struct.pack("<I", 0), "holds no samples"),
        (lambda b: b[:40] + struct.pack("<I", 2**32 - 2) + b[44:], "ends after 200 of the 4294967294 bytes"),
        (lambda b: b[:22] + b"\0\0" + b[24:], "bad # of channels"),
        (lambda b: b[:12] + b"junk\0\0\0\0" * 1000 + b[12:], "has more than 1000 chunks before its sound"),
    ],
)
def test_what_is_no_such_sound_is_refused_in_one_sentence(tmp_path, change, message):
    path = write_wav(tmp_path / "a.wav", noise(100))
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(UserError, match=message) as caught:
        read_wav(path, rate_hz=8000)
    assert str(caught.value).startswith(f"{path}: ")
    assert str(caught.value).endswith("save it as WAV, mono, 16-bit PCM, 8000 Hz")


def test_whatever_bytes_are_damaged_a_wav_file_is_read_or_refused(tmp_path):
    path = write_wav(tmp_path / "a.wav", noise(20))
    plain, rng, refused = path.read_bytes(), np.random.default_rng(1), 0
    for _ in range(300):
        content = bytearray(plain[: rng.integers(0, len(plain) + 1)])
        for place in rng.integers(0, max(len(content), 1), 4):
            if content:
                content[place % min(len(content), 48)] = rng.integers(256)
        path.write_bytes(bytes(content))
        try:
            read_wav(path, rate_hz=8000)
        except UserError:
            refused += 1
    assert refused > 100
