"""Files of images: which they are, how they are decoded, and what is said of those that cannot be read."""

import io
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest
from PIL import Image, ImageOps

from pilae import datasets
from pilae._base.progress import Progress
from pilae._pictures import decoder, reading
from pilae._pictures.decoder import Decoder, Layout, Unreadable
from pilae._pictures.folders import images_by_class, images_in
from pilae._pictures.reading import ImageReader

rng = np.random.default_rng(0)
GRAY = rng.integers(0, 256, (6, 8), dtype=np.uint8)
COLOUR = rng.integers(0, 256, (6, 8, 3), dtype=np.uint8)


def folder_of(path, **classes):
    """A folder of images: class to {file name: array, image or bytes}."""
    for name, files in classes.items():
        (path / name).mkdir(parents=True)
        for file, content in files.items():
            if isinstance(content, bytes):
                (path / name / file).write_bytes(content)
            else:
                image = Image.fromarray(content) if isinstance(content, np.ndarray) else content
                image.save(path / name / file, **({"lossless": True} if file.endswith("webp") else {}))
    return path


def smooth(height, width):
    """An image that can be made smaller and larger without losing much."""
    y, x = np.mgrid[:height, :width]
    return np.stack([255 * x / width, 255 * y / height, 255 * (x / width + y / height) / 2], axis=2).astype(np.uint8)


def pixels(tmp_path, image, layout, name="a.png", **options):
    image.save(tmp_path / name, **options)
    return Decoder().pixels(tmp_path / name, layout)


@pytest.mark.parametrize("ending", ["png", "bmp", "tif", "webp"])
def test_what_is_written_without_loss_is_read_without_loss(tmp_path, ending):
    path = folder_of(tmp_path, a={f"1.{ending}": COLOUR}, b={f"1.{ending}": COLOUR[::-1]})
    images, labels, files = datasets.load_images(path)
    assert images.dtype == np.uint8
    assert np.array_equal(images, [COLOUR, COLOUR[::-1]])
    assert labels.tolist() == ["a", "b"]
    assert files == [str(path / "a" / f"1.{ending}"), str(path / "b" / f"1.{ending}")]


def test_images_are_gray_if_all_are(tmp_path):
    without_colours = Image.fromarray(np.repeat(GRAY[:, :, None], 3, axis=2))  # red, green and blue are the same
    path = folder_of(tmp_path / "gray", a={"1.png": GRAY, "2.png": without_colours}, b={"1.gif": GRAY})
    images = datasets.load_images(path).images
    assert np.array_equal(images, [GRAY] * 3)
    path = folder_of(tmp_path / "one", a={"1.png": GRAY}, b={"1.png": COLOUR})
    images = datasets.load_images(path).images
    assert np.array_equal(images, [np.repeat(GRAY[:, :, None], 3, axis=2), COLOUR])


def test_a_gray_image_that_a_lossy_format_keeps_is_gray(tmp_path):
    smooth_gray = np.repeat(smooth(24, 24)[..., :1], 3, axis=2)
    off = smooth_gray + rng.integers(0, reading.GRAY_LEVELS + 1, smooth_gray.shape).astype(np.uint8)
    path = folder_of(tmp_path / "gray", a={"1.png": smooth_gray}, b={"1.png": off, "2.png": GRAY})
    assert datasets.load_images(path, size=(24, 24)).images.ndim == 3
    off[3, 4, 1] += 20
    path = folder_of(tmp_path / "tinted", a={"1.png": smooth_gray}, b={"1.png": off})
    assert datasets.load_images(path).images.ndim == 4


def test_sixteen_bits_keep_the_first_eight(tmp_path):
    deep = Image.fromarray(GRAY.astype(np.uint16) * 256 + 200)
    assert np.array_equal(pixels(tmp_path, deep, Layout(8, 6, 1))[..., 0], GRAY)
    assert np.array_equal(pixels(tmp_path, deep, Layout(8, 6, 1), "a.tif")[..., 0], GRAY)
    assert Decoder().header(tmp_path / "a.png").gray


def test_numbers_without_a_range_are_not_read(tmp_path):
    assert "32 bits" in pixels(tmp_path, Image.fromarray(GRAY.astype(np.float32)), Layout(8, 6, 1), "a.tif").why


def test_what_is_transparent_is_white(tmp_path):
    alpha = np.dstack([COLOUR, np.where(np.arange(8) < 4, 0, 255) * np.ones((6, 1))]).astype(np.uint8)
    read = pixels(tmp_path, Image.fromarray(alpha), Layout(8, 6, 3))
    assert (read[:, :4] == 255).all()
    assert np.array_equal(read[:, 4:], COLOUR[:, 4:])
    read = pixels(tmp_path, Image.fromarray(alpha).quantize(64), Layout(8, 6, 3))  # a palette with one clear colour
    assert (read[:, :4] == 255).all()
    assert (read[:, 4:] < 255).any()


def test_a_palette_has_the_colours_it_names(tmp_path):
    image = Image.fromarray(GRAY % 4)
    image = image.convert("P")
    image.putpalette([255, 0, 0, 0, 255, 0, 0, 0, 255, 9, 9, 9])
    colours = np.array([[255, 0, 0], [0, 255, 0], [0, 0, 255], [9, 9, 9]])
    assert np.array_equal(pixels(tmp_path, image, Layout(8, 6, 3)), colours[GRAY % 4])
    assert not Decoder().header(tmp_path / "a.png").gray


@pytest.mark.parametrize("ending", ["jpg", "png", "tif", "webp"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_images_are_the_way_up_they_were_taken(tmp_path, orientation, ending):
    exif, file = Image.Exif(), tmp_path / f"a.{ending}"
    exif[decoder.ORIENTATION] = orientation
    Image.fromarray(smooth(48, 80)).save(file, exif=exif)
    with Image.open(file) as image:
        upright = np.asarray(ImageOps.exif_transpose(image).convert("RGB"))
    height, width = upright.shape[:2]
    header = Decoder().header(file)
    assert (header.width, header.height) == (width, height) == ((48, 80) if orientation > 4 else (80, 48))
    assert np.array_equal(Decoder().pixels(file, Layout(width, height, 3)), upright)


def test_sizes_are_brought_together_and_it_is_said(tmp_path):
    sizes = [(60, 90), (60, 90), (80, 120), (300, 330)]
    files = {f"{k}.png": smooth(*size) for k, size in enumerate(sizes)}
    path = folder_of(tmp_path, a=files, b=files)
    with pytest.warns(UserWarning, match=r"have 3 sizes, about 105 x 70 pixels: all are brought to 64 x 43 \(size="):
        images = datasets.load_images(path).images
    assert images.shape == (8, 43, 64, 3)
    assert np.abs(images.astype(int) - smooth(43, 64)).max() < 12  # the whole image, whatever its size was
    assert datasets.load_images(path, size=(30, 20)).images.shape == (8, 20, 30, 3)


def test_a_few_of_another_size_follow_the_others(tmp_path):
    files = {f"{k}.png": smooth(20, 30) for k in range(10)}
    path = folder_of(tmp_path, a=files, b=files | {"odd.png": smooth(40, 61)})
    with pytest.warns(UserWarning, match="All are brought to 30 x 20 pixels, which 1 of 21 images are not"):
        assert datasets.load_images(path).images.shape == (21, 20, 30, 3)


def test_large_images_of_one_size_are_made_smaller(tmp_path):
    files = {"1.jpg": Image.fromarray(smooth(300, 600))}
    with pytest.warns(UserWarning, match="Images are 600 x 300 pixels: all are brought to 64 x 32"):
        images = datasets.load_images(folder_of(tmp_path, a=files, b=files)).images
    assert np.abs(images.astype(int) - smooth(32, 64)).max() < 16


def png_that_claims(width, height):
    """A PNG of a few bytes with a header of any size."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    lines = zlib.compress(b"")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", lines) + chunk(b"IEND", b"")


def encoded(array, kind="PNG"):
    file = io.BytesIO()
    Image.fromarray(array).save(file, kind)
    return file.getvalue()


DAMAGED = {
    "empty.png": (b"", "no image of a kind"),
    "text.jpg": (b"<html>not found</html>", "no image of a kind"),
    "torn.png": (encoded(COLOUR.repeat(20, 0))[:-200], "truncated"),
    "torn.jpg": (encoded(smooth(90, 90), "JPEG")[:-300], "truncated"),
    "bomb.png": (png_that_claims(40_000, 40_000), "exceeds limit"),
    "claim.png": (png_that_claims(8_000, 8_000), "64,000,000 pixels, and up to 50,000,000"),
    "zeros.gif": (b"GIF89a" + bytes(40), ""),
    "zeros.bmp": (b"BM" + bytes(60), ""),
    "zeros.tif": (b"II*\0" + bytes(60), ""),
    "zeros.webp": (b"RIFF\x20\0\0\0WEBPVP8 " + bytes(40), ""),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_what_is_damaged_is_named_with_the_reason(tmp_path, name):
    content, why = DAMAGED[name]
    path = folder_of(tmp_path, a={"1.png": COLOUR, name: content}, b={"1.png": COLOUR})
    with pytest.raises(ValueError, match=rf"1 of 3 images cannot be read, 'a/{name}' \(.*{why}.*skip=1\.$"):
        datasets.load_images(path)
    with pytest.warns(UserWarning, match=f"1 of 3 images cannot be read, 'a/{name}' .* they are left out"):
        images, labels, files = datasets.load_images(path, skip=1, size=(8, 6))
    assert len(images) == len(labels) == len(files) == 2
    assert labels.tolist() == ["a", "b"]


def test_a_bomb_takes_no_memory(tmp_path):
    (tmp_path / "a.png").write_bytes(png_that_claims(6_000, 6_000))
    code = (
        "import resource, sys; from pilae._pictures import decoder; decoder.MOST_PIXELS = 1_000_000; "
        "read = decoder.Decoder(); before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss; "
        "found = read.pixels(sys.argv[1], decoder.Layout(8, 8, 1)); "
        "print(type(found).__name__, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000)"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "a.png"], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["Unreadable", "True"]


def test_large_photographs_are_reduced_while_they_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(decoder, "MOST_PIXELS", 20_000)
    Image.fromarray(smooth(400, 600)).save(tmp_path / "a.jpg")
    Image.fromarray(smooth(400, 600)).save(tmp_path / "a.png")
    read = Decoder().pixels(tmp_path / "a.jpg", Layout(30, 20, 3))
    assert np.abs(read.astype(int) - smooth(20, 30)).max() < 16
    assert isinstance(Decoder().pixels(tmp_path / "a.png", Layout(30, 20, 3)), Unreadable)  # which is decoded whole


def test_images_that_take_too_much_memory_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "MOST_BYTES", 1000)
    path = folder_of(tmp_path, a={"1.png": smooth(20, 20)}, b={"1.png": smooth(20, 20)})
    with pytest.raises(ValueError, match=r"2 images of 20 x 20 pixels take more .* such as size=\(10, 10\)"):
        datasets.load_images(path)


def test_many_damaged_files_are_counted(tmp_path):
    path = folder_of(tmp_path, a={"1.png": COLOUR} | {f"x{k:02}.png": b"x" for k in range(9)}, b={"1.png": COLOUR})
    with pytest.raises(
        ValueError, match=r"9 of 11 images cannot be read, .* and 4 more, and of the others .*: mend them, or .*skip=9"
    ):
        datasets.load_images(path, skip=8)


def test_when_nothing_can_be_read_nothing_can_be_left_out(tmp_path):
    path = folder_of(tmp_path, a={"1.png": b""}, b={"1.png": b""})
    with pytest.raises(ValueError, match=r"2 of 2 images cannot be read, .*: mend them\.$"):
        datasets.load_images(path, skip=5)


def test_files_are_found_by_folder_and_ending(tmp_path):
    path = folder_of(
        tmp_path,
        cat={"2.png": GRAY, "10.JPG": encoded(COLOUR, "JPEG"), ".hidden.png": b"", "notes.txt": b"hello"},
        dog={"1.png": GRAY},
        fish={},
    )
    (path / ".git").mkdir()
    (path / "lost.png").write_bytes(b"")
    (path / "README.md").write_text("what this is")
    (path / "cat" / "more").mkdir()
    found = images_by_class(path)
    assert [f"{file.parent.name}/{file.name}" for file in found.files] == ["cat/10.JPG", "cat/2.png", "dog/1.png"]
    assert found.labels == ["cat", "cat", "dog"]
    said = " ".join(found.remarks)
    for words in ("lost.png", "There is no image in 'fish'", "'cat/notes.txt'", "'cat/more'"):
        assert words in said
    assert "hidden" not in said
    assert "README" not in said
    assert [file.name for file in images_in([str(path / "dog"), str(path / "cat" / "2.png")])] == ["1.png", "2.png"]
    assert len(images_in([str(path)])) == 4


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        ({}, "has no folder for a class in it"),
        ({"a": {"1.png": GRAY}}, "images of one class only, 'a': at least two"),
        ({"a": {}, "b": {}}, "no images in its folders"),
        ({"train/a": {"1.png": GRAY}, "test/b": {"1.png": GRAY}}, "hold folders and no images: .*test'"),
    ],
)
def test_folders_without_classes_are_refused(tmp_path, make, sentence):
    with pytest.raises(ValueError, match=sentence):
        images_by_class(folder_of(tmp_path, **make))


def test_folders_that_are_none(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no folder"):
        datasets.load_images(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match="There is no file or folder"):
        images_in([str(tmp_path / "nowhere.png")])
    with pytest.raises(ValueError, match="There is no image in"):
        images_in([str(tmp_path)])


@pytest.mark.parametrize(
    ("options", "sentence"), [({"size": (3,)}, "'size' must be"), ({"skip": -1}, "'skip' must be")]
)
def test_wrong_parameters(tmp_path, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        datasets.load_images(tmp_path, **options)


def test_files_come_in_order_from_several_threads(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "AT_ONCE", 7)
    flat = {f"{k:03}.png": np.full((4, 4), k, np.uint8) for k in range(40)}
    found = images_by_class(folder_of(tmp_path, a=flat, b={"1.png": np.full((4, 4), 99, np.uint8)}))
    images, labels, _ = ImageReader(0, Progress(False)).by_class(found)
    assert images[:, 0, 0].tolist() == [*range(40), 99]
    assert labels.tolist() == ["a"] * 40 + ["b"]


def test_reading_is_told_and_needs_pillow(tmp_path, monkeypatch, capsys):
    path = folder_of(tmp_path, a={"1.png": GRAY}, b={"1.png": GRAY})
    datasets.load_images(path, verbose=True)
    assert "images" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(ImportError, match=r"Reading images needs PIL: pip install 'pilae\[images\]'"):
        datasets.load_images(path)


@pytest.mark.parametrize("kind", decoder.FORMATS)
def test_files_with_wrong_bytes_are_read_or_named(tmp_path, kind):
    """Whatever stands in a file, there are pixels or a reason, and nothing else."""
    random, path, read, outcomes = np.random.default_rng(1), tmp_path / "a", Decoder(), set()
    whole = np.frombuffer(encoded(smooth(20, 30), kind), np.uint8)
    for _ in range(150):
        content = whole.copy()
        places = random.integers(0, min(len(content), random.choice([60, len(content)])), random.integers(1, 6))
        content[places] = random.integers(0, 256, len(places))
        path.write_bytes(content[: random.integers(1, len(content) + 1)] if random.random() < 0.3 else content)
        with read.at_work():
            header, found = read.header(path), read.pixels(path, Layout(10, 8, 3))
        outcomes.add(type(found))
        assert isinstance(header, decoder.Header | Unreadable)
        if isinstance(found, Unreadable):
            assert found.why
            assert "\n" not in found.why
        else:
            assert found.shape == (8, 10, 3)
            assert found.dtype == np.uint8
    assert outcomes == {np.ndarray, Unreadable}


@pytest.mark.parametrize(("bits", "said"), [(10, "leaves 4 levels"), (12, "leaves 16 levels"), (16, None)])
def test_images_of_16_bits_that_do_not_use_them_are_said(tmp_path, recwarn, bits, said):
    deep = np.linspace(0, 2**bits - 1, 48).astype(np.uint16).reshape(6, 8)
    path = folder_of(tmp_path, a={"1.png": Image.fromarray(deep)}, b={"1.png": COLOUR})
    assert datasets.load_images(path).images.shape == (2, 6, 8, 3)
    words = [str(one.message) for one in recwarn.list]
    assert words == [] if said is None else any(said in sentence for sentence in words)


def test_images_of_16_bits_of_which_nothing_would_be_left_are_an_error(tmp_path):
    dark = Image.fromarray(GRAY.astype(np.uint16))
    path = folder_of(tmp_path, a={"1.png": dark}, b={"1.png": dark})
    with pytest.raises(ValueError, match=r"above 248 of 65,535, .* all zero: write them with 8 bits"):
        datasets.load_images(path)


def test_images_as_a_model_takes_them(tmp_path):
    """A folder of gray images is one of colours to a model of colours, and the other way round."""

    class Model:
        image_shape_ = (5, 9, 3)

    path = folder_of(tmp_path, a={"1.png": GRAY}, b={"1.png": GRAY[::-1]})
    model = Model()
    assert datasets.load_images(path, like=model).images.shape == (2, 5, 9, 3)
    model.image_shape_ = (6, 8, 1)
    assert np.array_equal(datasets.load_images(path, like=model).images, [GRAY, GRAY[::-1]])
    for wrong in ({"like": model, "size": (3, 3)}, {"like": datasets}):
        with pytest.raises(ValueError, match="'like' must be a model fitted on images"):
            datasets.load_images(path, **wrong)
