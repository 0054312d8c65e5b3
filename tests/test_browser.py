"""The report in a real browser: `make test-browser` (Debian's Chromium, headless)."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_digits

from pilae import PILAEClassifier, PILAEImageClassifier, PILAERegressor
from pilae.report import make_report

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    X, y = load_digits(return_X_y=True)
    names = np.array([f"<b onload=alert({k})>digit {k}</b>" for k in range(10)])[y]
    model = PILAEClassifier(depth=2, random_state=0).fit(X[:1200], names[:1200])
    model.report(X[1200:], names[1200:], title="Digits <script>alert(1)</script>").save(folder / "classes.html")
    X, y = load_diabetes(return_X_y=True)
    model = PILAERegressor(random_state=0).fit(X[:300], y[:300])
    columns = [
        {"name": f"a_long_name_of_a_column_{k}" * 5, "kind": "number", "width": 1, "missing": 0} for k in range(10)
    ]
    table = {"file": f"{'file' * 50}.csv", "rows": 442, "target": "target" * 50, "columns": columns}
    make_report(model, X[300:], y[300:], table=table).save(folder / "numbers.html")
    digits = load_digits()
    model = PILAEImageClassifier(filters=48).fit(digits.images[:200], names[:200])
    files = [f"{'folder' * 30}/<i>{k}</i>.png" for k in range(len(names) - 200)]
    model.report(digits.images[200:], names[200:], files=files).save(folder / "images.html")
    birds().save(folder / "words.html")
    return folder


def birds():
    """Long names of classes, and long values: the worst rows have eleven columns."""
    rng = np.random.default_rng(0)
    kind = rng.choice(["Adelie Penguin (Pygoscelis adeliae)", "Gentoo penguin (Pygoscelis papua)", "no"], 400)
    frame = pd.DataFrame({f"Length of part {k} (mm)": rng.standard_normal(400) for k in range(4)})
    frame["Date of the first egg"] = pd.date_range("2007-11-13", periods=400).strftime("%Y-%m-%d")
    frame["Airport of the observer"] = rng.choice(["WASHINGTON DULLES INTL ARPT", "SAN FRANCISCO INTL ARPT"], 400)
    frame.iloc[:, 0] += (kind == "no") + 0.5 * (kind < "B")
    model = PILAEClassifier(depth=0, random_state=0).fit(frame[:300], kind[:300])
    own = model.fitted_.columns
    each = zip(own.names, own.became(), own.widths().tolist(), strict=True)
    columns = [{"name": name, "kind": words, "width": width, "missing": 0} for name, words, width in each]
    columns = [column | {"missing_where_trained": 0} for column in columns]
    table = {"file": "birds.csv", "rows": 400, "target": "kind", "columns": columns}
    return make_report(model, frame[300:], kind[300:], table=table, numbers=np.arange(301, 401))


@pytest.fixture(scope="module")
def browser():
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options)
    yield driver
    driver.quit()


WIDTHS = {"phone": 380, "large phone": 480, "tablet": 800, "laptop": 1280, "desktop": 1920}


@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
@pytest.mark.parametrize("name", ["classes", "numbers", "words", "images"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_renders(browser, pages, name, width, scheme):
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500},
    )
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )
    browser.get((pages / f"{name}.html").as_uri())
    browser.execute_script("document.querySelectorAll('details').forEach(each => { each.open = true })")
    browser.save_screenshot(str(pages / f"{name}-{width}-{scheme}.png"))
    assert browser.get_log("browser") == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    sizes = browser.execute_script(
        "return [...document.querySelectorAll('figure svg')].filter(f => !f.closest('.tiny')).map(f => {"
        "const r = f.getBoundingClientRect();"
        "return [r.width, r.height] })"
    )
    assert len(sizes) >= 3
    assert all(w > 150 and h > 40 for w, h in sizes)
    cut = browser.execute_script(
        "return [...document.querySelectorAll('.wide')].filter(each => each.scrollWidth > each.clientWidth)"
        ".map(each => each.previousElementSibling.textContent)"
    )
    assert cut == []
    tall = browser.execute_script(
        "return [...document.querySelectorAll('th')].filter(each => each.getBoundingClientRect().height > 90)"
        ".map(each => each.textContent)"
    )
    assert width < 1000 or tall == []
    ground, text = browser.execute_script(
        "const s = getComputedStyle(document.body); return [s.backgroundColor, s.color]"
    )
    assert brightness(ground) > 200 if scheme == "light" else brightness(ground) < 60
    assert abs(brightness(ground) - brightness(text)) > 120
    assert browser.execute_script("return document.querySelectorAll('script').length") == 0


def brightness(colour: str) -> float:
    return float(np.mean([float(part) for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]))
