"""cgc search: the page in a browser, its answers, and what it refuses."""
import base64
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

import numpy
import pytest

CGC = [sys.executable, "-c", "from cgc._program import main; main()"]


@pytest.fixture(scope="module")
def server(plans, tmp_path_factory):
    """The address of a server, and the folder of its pictures."""
    folder = tmp_path_factory.mktemp("search") / "pictures"
    shutil.copytree(plans / "pictures", folder)
    (folder / "a <b>&amp;.jpg").write_bytes((folder / "0.jpg").read_bytes())
    (folder / "bad.jpg").write_bytes(b"")
    index = folder.parent / "index"
    running = subprocess.Popen([*CGC, "search", folder, "--model", plans / "clip", "--executor", "reference", "--index", index, "--port", "0",
                                "--no-browser"], stdout=subprocess.PIPE, text=True)
    line = running.stdout.readline()
    assert line.startswith("8 pictures, model RANDOM-WEIGHTS-"), line
    yield next(word for word in line.split() if word.startswith("http")).rstrip("/"), folder
    running.send_signal(signal.SIGINT)
    assert running.wait(30) in (0, 130)


def get(url, data=None, **headers):
    """The status and the body."""
    request = urllib.request.Request(url, data, {name.replace("_", "-"): value for name, value in headers.items()})
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def test_answers(server, plans):
    url, folder = server
    status, body = get(url + "/search?text=a%20cat&limit=3")
    answer, vectors = json.loads(body), numpy.load(plans / "clip.npz")
    want = vectors["images"] @ vectors["texts"][0]
    assert status == 200 and answer["pictures"] == 8 and answer["identity"].startswith("RANDOM-WEIGHTS-")
    best = sorted(zip(want, sorted(path.name for path in (plans / "pictures").iterdir())), reverse=True)
    scores = {result["key"]: result["score"] for result in answer["results"]}
    assert len(scores) == 3 and best[0][1] in scores and abs(scores[best[0][1]] - best[0][0]) < 1e-3
    status, body = get(url + "/search?limit=2", (folder / "1.jpg").read_bytes())
    (first, second) = json.loads(body)["results"]
    assert status == 200 and first["key"] == "1.jpg" and first["score"] > .999 > second["score"]
    assert json.loads(get(f"{url}/search?like={first['number']}&limit=1")[1])["results"] == [first]
    status, body = get(f"{url}/thumbnail/{first['number']}")
    assert status == 200 and body.startswith(b"\xff\xd8")


def test_refusals(server, plans):
    url, folder = server
    for path, message in {"/search": "give text=WORDS", "/search?like=99": "give text=WORDS", "/search?text=a&limit=0": "limit is 0",
                          "/search?text=a&limit=x": "invalid literal"}.items():
        status, body = get(url + path)
        assert status == 400 and message in json.loads(body)["error"], path
    for path in ("/../../etc/passwd", "/thumbnail/../../etc/passwd", "/thumbnail/%2e%2e%2fmodel.json", "/thumbnail/99", "/thumbnail/-1",
                 "/model.json"):
        status, body = get(url + path)
        assert status == 404 and b"root" not in body, path
    assert get(url + "/", Host="example.com")[0] == 400
    status, body = get(url + "/search", b"x", Origin="http://example.com")
    assert status == 403 and "example.com" in json.loads(body)["error"]
    for content, message in {b"": "", b"no picture": ""}.items():
        status, body = get(url + "/search", content)
        assert status == 400 and json.loads(body)["error"]
    status, body = get(url + "/search", bytes(33 << 20))
    assert status == 413 and "more than 32 MiB" in json.loads(body)["error"]
    assert get(url + "/")[0] == 200


def test_a_port_in_use(server, plans):
    url, folder = server
    port = url.rsplit(":", 1)[1]
    done = subprocess.run([*CGC, "search", folder, "--model", plans / "clip", "--executor", "reference", "--index", folder.parent / "index",
                           "--port", port, "--no-browser"], capture_output=True, text=True)
    assert done.returncode == 2 and f"cannot listen on 127.0.0.1 port {port}" in done.stderr


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
    assert len(names) == 8 and "a <b>&amp;.jpg" in names and "bad.jpg" not in names
    assert browser.wait("[...document.images].filter(e => e.id != 'query').every(e => e.complete && e.naturalWidth > 0)")
    assert "RANDOM-WEIGHTS-" in browser.run("return document.getElementById('identity').textContent")
    browser.screenshot(tmp_path / "page.png")
    assert (tmp_path / "page.png").stat().st_size > 5000
    # To the second result, and on with it.
    browser.keys(TAB)
    browser.run("document.querySelectorAll('li button')[1].focus()")
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
