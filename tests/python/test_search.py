"""cgc search: the page in a browser, its answers, and what it refuses."""
import base64
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import urllib.error
import urllib.parse
import urllib.request
import warnings

import numpy
import pytest
from cgc import _commands, _search
from PIL import Image

CGC = [sys.executable, "-c", "from cgc._program import main; main()"]


@pytest.fixture(scope="module")
def server(plans, tmp_path_factory):
    """The address of a server, and the folder of its pictures."""
    folder = tmp_path_factory.mktemp("search") / "pictures"
    shutil.copytree(plans / "pictures", folder)
    (folder / "a <b>&amp;.jpg").write_bytes((folder / "0.jpg").read_bytes())
    (folder / "bad.jpg").write_bytes(b"")
    exif = Image.Exif()
    exif[0x0112] = 6  # A quarter turn.
    Image.new("RGB", (60, 20)).save(folder / "turned.jpg", exif=exif)
    index = folder.parent / "index"
    running = subprocess.Popen([*CGC, "search", folder, "--model", plans / "clip", "--executor", "reference", "--index", index, "--port", "0",
                                "--no-browser"], stdout=subprocess.PIPE, text=True)
    line = running.stdout.readline()
    assert line.startswith("9 pictures, model RANDOM-WEIGHTS-"), line
    yield next(word for word in line.split() if word.startswith("http")).rstrip("/"), folder
    running.send_signal(signal.SIGINT)
    assert running.wait(30) in (0, 130)


def get(url, data=None, **headers):
    """The status and the body."""
    return get_all(url, data, **headers)[:2]


def get_all(url, data=None, **headers):
    """The status, the body and the headers."""
    request = urllib.request.Request(url, data, {name.replace("_", "-"): value for name, value in headers.items()})
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, response.read(), response.headers
    except urllib.error.HTTPError as error:
        return error.code, error.read(), error.headers


def test_answers(server, plans):
    url, folder = server
    status, body = get(url + "/search?text=a%20cat&limit=3")
    answer, vectors = json.loads(body), numpy.load(plans / "clip.npz")
    want = vectors["images"] @ vectors["texts"][0]
    assert status == 200 and answer["pictures"] == 9 and answer["identity"].startswith("RANDOM-WEIGHTS-")
    best = sorted(zip(want, sorted(path.name for path in (plans / "pictures").iterdir())), reverse=True)
    scores = {result["key"]: result["score"] for result in answer["results"]}
    assert len(scores) == 3 and best[0][1] in scores and abs(scores[best[0][1]] - best[0][0]) < 1e-3
    status, body = get(url + "/search?limit=2", (folder / "1.jpg").read_bytes())
    (first, second) = json.loads(body)["results"]
    assert status == 200 and first["key"] == "1.jpg" and first["score"] > .999 > second["score"]
    assert json.loads(get(f"{url}/search?like={first['number']}&limit=1")[1])["results"] == [first]
    everything = json.loads(get(f"{url}/search?like={first['number']}&limit=200")[1])["results"]
    numbers = {result["key"]: result["number"] for result in everything}
    assert sorted(numbers.values()) == list(range(9)) and len(json.loads(get(f"{url}/search?like=0")[1])["results"]) == 9
    for key in ("0.jpg", "6.jpg", "turned.jpg"):  # The last number too.
        assert json.loads(get(f"{url}/search?like={numbers[key]}&limit=1")[1])["results"][0]["score"] > .999
        status, body = get(f"{url}/thumbnail/{numbers[key]}")
        assert status == 200 and body.startswith(b"\xff\xd8")
        assert Image.open(io.BytesIO(body)).size == {"0.jpg": (40, 30), "6.jpg": (200, 150), "turned.jpg": (20, 60)}[key]


def test_refusals(server, plans):
    url, folder = server
    many = "9" * 5000
    for path, message in {"/search": "give text=WORDS", "/search?like=9": "give text=WORDS", f"/search?like={many}": "give text=WORDS",
                          "/search?text=a&limit=0": "limit is '0'", "/search?text=a&limit=201": "a number from 1 to 200",
                          "/search?text=a&limit=x": "limit is 'x'", f"/search?text=a&limit={many}": "limit is '9"}.items():
        status, body = get(url + path)
        assert status == 400 and message in json.loads(body)["error"], path
    for path in ("/../../etc/passwd", "/thumbnail/../../etc/passwd", "/thumbnail/%2e%2e%2fmodel.json", "/thumbnail/9", "/thumbnail/-1",
                 f"/thumbnail/{many}", "/model.json"):
        status, body = get(url + path)
        assert status == 404 and b"root" not in body, path
    assert get(url + "/", Host="example.com")[0] == 400
    for content, message in {b"": "", b"no picture": ""}.items():
        status, body = get(url + "/search", content)
        assert status == 400 and json.loads(body)["error"]
    status, body = get(url + "/search", bytes(33 << 20))
    assert status == 413 and "more than 32 MiB" in json.loads(body)["error"]
    assert get(url + "/")[0] == 200


def test_the_page_of_another_origin_is_refused(server):
    url, folder = server
    for path, data in (("/", None), ("/search?text=a", None), ("/search", b"x"), ("/thumbnail/0", None), ("/other", None)):
        for headers in ({"Origin": "http://example.com"}, {"Origin": "null"}, {"Sec_Fetch_Site": "cross-site"}, {"Sec_Fetch_Site": "same-site"}):
            status, body = get(url + path, data, **headers)
            assert status == 403 and headers.get("Origin", "another page") in json.loads(body)["error"], path
    for headers in ({"Origin": url}, {"Sec_Fetch_Site": "same-origin"}, {"Sec_Fetch_Site": "none"}):
        assert get(url + "/thumbnail/0", **headers)[0] == get(url + "/", **headers)[0] == 200
    link = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}
    assert get(url + "/", **link)[0] == 200 and get(url + "/thumbnail/0", **link)[0] == 403
    for path in ("/", "/search?text=a", "/thumbnail/0", "/thumbnail/9"):
        headers = get_all(url + path)[2]
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin" and headers["X-Content-Type-Options"] == "nosniff"
    policy = get_all(url + "/")[2]["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; ") and "frame-ancestors 'none'" in policy


def test_arguments_that_are_refused(server, plans, tmp_path):
    url, folder = server
    port = url.rsplit(":", 1)[1]
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        archive.add(folder / "0.jpg", "0.jpg")
    for source, options, code, message in [
            (folder, ["--port", port], 2, f"cannot listen on 127.0.0.1 port {port}"),
            (folder, ["--port", "99999"], 2, "99999 is not from 0 to 65535"),
            (folder, ["--host", "a..b", "--port", "0"], 2, "cannot listen on a..b"), (tmp_path / "a.tar", [], 2, "a.tar is a file; give a folder"),
            (tmp_path / "no", [], 3, "no does not exist")]:
        done = subprocess.run([*CGC, "search", source, "--model", plans / "clip", "--executor", "reference", "--index", tmp_path / "index",
                               "--no-browser", *options], capture_output=True, text=True)
        assert done.returncode == code and message in done.stderr and "Traceback" not in done.stderr, done.stderr
        assert (tmp_path / "index").exists() == (source == folder and "99999" not in options)
        shutil.rmtree(tmp_path / "index", ignore_errors=True)


def test_pictures_that_are_gone_or_have_changed(plans, tmp_path, monkeypatch, capsys):
    folder, found = tmp_path / "pictures", []
    shutil.copytree(plans / "pictures", folder)
    (folder / "bad.jpg").write_bytes(b"")
    (folder / "worse.jpg").write_bytes(b"")
    monkeypatch.setattr(_search, "serve", lambda index, *_: found.append(index))
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # Which run() sets.

    def search():
        options = ["--model", str(plans / "clip"), "--executor", "reference", "--index", str(tmp_path / "index")]
        assert _commands.run("search", [str(folder), *options]) == 0
        return found.pop(), capsys.readouterr().err

    index, message = search()
    vectors = dict(zip(index.keys, map(index.vector, range(len(index.keys)))))
    assert len(vectors) == 7 and "2 pictures cannot be read and are left out" in message
    shutil.copy(folder / "1.jpg", folder / "bad.jpg")
    shutil.copy(folder / "1.jpg", folder / "0.jpg")
    for gone in ("2.jpg", "worse.jpg"):
        (folder / gone).unlink()
    index, message = search()
    assert sorted(index.keys) == ["0.jpg", "1.jpg", "3.jpg", "4.jpg", "5.png", "6.jpg", "bad.jpg"] and "left out" not in message
    for row, key in enumerate(index.keys):
        assert numpy.allclose(index.vector(row), vectors["1.jpg" if key in ("0.jpg", "bad.jpg") else key], atol=1e-6)
    (folder / "3.jpg").unlink()
    assert index.thumbnail(index.keys.index("3.jpg")) is None


class Browser:
    """A headless Chromium, driven by the WebDriver protocol of chromedriver."""

    def __init__(self, folder):
        self._driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, "HOME": str(folder), "TMPDIR": str(folder)})
        line = next(line for line in self._driver.stdout if "started successfully on port" in line)
        self._url = f"http://127.0.0.1:{line.strip().rstrip('.').rsplit(' ', 1)[1]}/session"
        options = {"args": ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1000,800"]}
        answer = self._call("", {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}})
        self._url += f"/{answer['sessionId']}"

    def _call(self, path, body=None, method="POST"):
        request = urllib.request.Request(self._url + path, json.dumps(body or {}).encode() if method == "POST" else None,
                                         {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.load(response)["value"]

    def open(self, url):
        self._call("/url", {"url": url})

    def run(self, script):
        return self._call("/execute/sync", {"script": script, "args": []})

    def keys(self, text):
        """Presses keys, in the element that has the focus."""
        actions = [{"type": kind, "value": key} for key in text for kind in ("keyDown", "keyUp")]
        self._call("/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def upload(self, selector, path):
        element = self._call("/element", {"using": "css selector", "value": selector})
        self._call(f"/element/{next(iter(element.values()))}/value", {"text": str(path)})

    def wait(self, script):
        end = time.monotonic() + 60
        while not (value := self.run(f"return {script}")):
            assert time.monotonic() < end, script
            time.sleep(.05)
        return value

    def screenshot(self, path):
        path.write_bytes(base64.b64decode(self._call("/screenshot", method="GET")))

    def close(self):
        try:
            self._call("", method="DELETE")
        finally:
            self._driver.terminate()
            self._driver.wait()


@pytest.fixture
def browser(short_folder):
    made = Browser(short_folder)
    yield made
    made.close()


ENTER, TAB = "\ue007", "\ue004"
NAMES = "[...document.querySelectorAll('li span:first-of-type')].map(e => e.textContent)"
FOUND = "document.getElementById('status').textContent.includes(' pictures in ')"


def test_the_page_by_keyboard(server, browser, tmp_path):
    url, folder = server
    browser.open(url)
    browser.keys("a cat" + ENTER)  # The field has the focus.
    browser.wait(FOUND)
    names = browser.run(f"return {NAMES}")
    assert len(names) == 9 and "a <b>&amp;.jpg" in names and "bad.jpg" not in names
    assert browser.wait("[...document.images].filter(e => e.id != 'query').every(e => e.complete && e.naturalWidth > 0)")
    identity = browser.run("return document.getElementById('identity').textContent")
    assert "RANDOM-WEIGHTS-" in identity and identity.endswith("RANDOM WEIGHTS: the order means nothing.")
    browser.screenshot(tmp_path / "page.png")
    assert (tmp_path / "page.png").stat().st_size > 5000
    # Past the button and the file to the second result, and on with it.
    browser.keys(TAB * 4)
    assert browser.run("return document.activeElement === document.querySelectorAll('li button')[1]")
    assert browser.run("const style = getComputedStyle(document.activeElement); return style.outlineStyle + parseInt(style.outlineWidth)") == "solid3"
    wanted = browser.run(f"return {NAMES}[1]")
    browser.keys(ENTER)
    browser.wait(f"{NAMES}[0] === {json.dumps(wanted)} && !document.getElementById('query').hidden")


def test_the_page_by_picture_and_its_errors(server, browser):
    url, folder = server
    browser.open(url)
    browser.upload("#file", folder / "1.jpg")
    browser.wait(f"{NAMES}[0] === '1.jpg'")
    browser.upload("#file", folder / "bad.jpg")
    browser.wait("document.getElementById('status').className === 'error' && document.getElementById('status').textContent")
    browser.open(url + "/?text=dog")
    browser.wait(FOUND)


def test_a_picture_is_dropped(server, browser):
    browser.open(server[0] + "/?text=a")
    browser.wait(FOUND)
    browser.run("""
        window.wanted = document.querySelectorAll('li')[2].querySelector('span').textContent;
        fetch(document.querySelectorAll('li img')[2].src).then(answer => answer.blob()).then(blob => {
          const given = new DataTransfer();
          given.items.add(new File([blob], 'a.jpg'));
          for (const kind of ['dragover', 'drop']) {
            const event = new DragEvent(kind, {dataTransfer: given, bubbles: true, cancelable: true});
            document.body.dispatchEvent(event);
            window.refused = event.defaultPrevented;
          }
        })""")
    browser.wait(f"{NAMES}[0] === window.wanted && !document.getElementById('query').hidden")
    assert browser.run("return window.refused && !document.body.classList.contains('drop')")


def test_an_answer_that_comes_late_is_dropped(server, browser):
    browser.open(server[0] + "/?text=a")
    browser.wait(FOUND)
    browser.run("""
        const own = window.fetch, answers = [];
        window.fetch = path => own(path).then(answer => new Promise(resolve => answers.push([path, () => resolve(answer)])));
        window.answers = answers;
        for (const number of [1, 2]) search(`/search?like=${number}&limit=${number}`, {}, null)""")
    browser.wait("window.answers.length === 2")
    browser.run("window.answers.find(([path]) => path.endsWith('limit=2'))[1]()")
    browser.wait("document.querySelectorAll('li').length === 2")
    browser.run("window.answers.find(([path]) => path.endsWith('limit=1'))[1]()")
    assert browser.run("return new Promise(resolve => setTimeout(() => resolve(document.querySelectorAll('li').length), 200))") == 2


def test_every_control_has_a_name_and_a_role(server, browser):
    browser.open(server[0] + "/?text=a")
    browser.wait(FOUND)
    unnamed = browser.run("""
        return [...document.querySelectorAll('input, button, ol, img')].filter(e =>
          !(e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.length || e.hasAttribute('alt'))).map(e => e.outerHTML)""")
    assert unnamed == []
    assert browser.run("return document.documentElement.lang") == "en"
    assert browser.run("return !!document.querySelector('form[role=search]') && !!document.querySelector('main') && "
                       "document.getElementById('status').getAttribute('aria-live') === 'polite'")
