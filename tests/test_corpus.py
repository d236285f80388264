"""The text is the right one or none: files, mirrors that fail in every way, and the offline fallback."""

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from small import play
from specledger.commands.run import main
from specledger.corpus.source import TINY_SHAKESPEARE, acquire, from_file, from_mirrors
from specledger.corpus.text import Corpus, Vocabulary, check_usable, decode_utf8, split_point
from specledger.foundation.errors import UserError

TEXT = play(3000).encode()
SUM = hashlib.sha256(TEXT).hexdigest()
SETTINGS = {"validation_fraction": 0.1}
SOURCE = {"offline_fallback": "pydoc", "prompt": "ROMEO:\n", "context": 16, "positions": 1, "order": 5}


class Mirror(BaseHTTPRequestHandler):
    """One path for each way in which a mirror answers."""

    def do_GET(self):
        self.server.asked.append(self.path)
        if self.path == "/missing":
            self.send_error(404)
        elif self.path == "/page":
            self.answer(b"<html>Please log in</html>", kind="text/html")
        elif self.path == "/cut":
            self.answer(TEXT[: len(TEXT) // 2], length=len(TEXT))
        elif self.path == "/short":
            self.answer(TEXT[:-1])
        elif self.path == "/stalled":
            self.server.closing.wait(10)
        else:
            self.answer(TEXT)

    def answer(self, body: bytes, *, kind: str = "text/plain", length: int | None = None):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def mirror(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Mirror)
    server.asked, server.closing, server.daemon_threads = [], threading.Event(), True
    server.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield server
    server.closing.set()
    server.shutdown()
    server.server_close()


BAD = ("/missing", "/page", "/cut", "/short", "/stalled")
REFUSED = "http://127.0.0.1:9/discard"  # nobody listens there


def test_mirrors_in_turn_until_one_is_good(mirror):
    said = []
    urls = [REFUSED, *(mirror.address + path for path in (*BAD, "/good", "/never"))]
    raw, origin = from_mirrors(urls, SUM, 0.3, said.append)
    assert raw == TEXT and origin == mirror.address + "/good"
    assert mirror.asked == [*BAD, "/good"]
    assert len(said) == len(BAD) + 1
    for url, line in zip(urls, said, strict=False):
        assert url in line and "\n" not in line


def test_each_failure_is_told_apart(mirror):
    said = []
    assert from_mirrors([mirror.address + path for path in BAD], SUM, 0.3, said.append) is None
    missing, page, cut, short, stalled = said
    assert "Not Found" in missing or "404" in missing
    assert "26 bytes" in page and "refused" in page
    assert f"{len(TEXT) // 2} bytes" in cut and "refused" in cut
    assert f"{len(TEXT) - 1} bytes" in short and "refused" in short
    assert "timed out" in stalled


def run_corpus(folder, *, path=None, sha256=None, urls=(REFUSED,), **changes) -> int:
    """The stage as the rule calls it."""
    source = {
        **SOURCE,
        **changes,
        "path": path and str(path),
        "sha256": sha256,
        "download": {"sha256": SUM, "urls": list(urls), "timeout_s": 0.3},
    }
    arguments = ["--settings", json.dumps(SETTINGS), "--source", json.dumps(source)]
    arguments += [
        "--text",
        str(folder / "text.txt"),
        "--record",
        str(folder / "corpus.json"),
        "--log",
        str(folder / "log"),
    ]
    return main(["corpus", *arguments])


def test_download_is_recorded(mirror, tmp_path):
    assert run_corpus(tmp_path, urls=[mirror.address + "/missing", mirror.address + "/good"]) == 0
    record = json.loads((tmp_path / "corpus.json").read_text())
    assert (tmp_path / "text.txt").read_bytes() == TEXT
    assert record["source"] == "download" and record["origin"] == mirror.address + "/good"
    assert (record["sha256"], record["bytes"], record["fallback"]) == (SUM, len(TEXT), False)
    assert record["train_characters"] == 2700 and record["validation_characters"] == 300
    assert "".join(record["vocabulary"]) == "".join(sorted(set(TEXT.decode())))
    assert record["tiny_shakespeare"] is False
    corpus = Corpus.load(tmp_path / "text.txt", record, "ROMEO:\n")
    assert corpus.vocabulary.decode([*corpus.train, *corpus.validation]) == TEXT.decode()
    assert corpus.vocabulary.decode(corpus.prompt) == "ROMEO:\n"


def test_local_file(tmp_path):
    mine = tmp_path / "my play.txt"
    mine.write_bytes(TEXT)
    for asked in (None, SUM):
        assert run_corpus(tmp_path / "out", path=mine, sha256=asked) == 0
        record = json.loads((tmp_path / "out" / "corpus.json").read_text())
        assert (record["source"], record["origin"], record["sha256"]) == ("file", "my play.txt", SUM)


def kept(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != "log")


def one_error(capsys) -> str:
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("specledger corpus: ")]
    assert len(lines) == 1
    return lines[0]


def test_wrong_sum_keeps_nothing(tmp_path, capsys):
    mine, out = tmp_path / "mine.txt", tmp_path / "out"
    mine.write_bytes(TEXT)
    assert run_corpus(out, path=mine, sha256=TINY_SHAKESPEARE) == 1
    line = one_error(capsys)
    assert str(mine) in line and SUM in line and TINY_SHAKESPEARE in line
    assert kept(out) == []


def test_wrong_sum_leaves_an_older_corpus_alone(tmp_path, capsys):
    mine, out = tmp_path / "mine.txt", tmp_path / "out"
    mine.write_bytes(TEXT)
    assert run_corpus(out, path=mine) == 0
    before = {path.name: path.read_bytes() for path in out.iterdir() if path.name != "log"}
    mine.write_bytes(TEXT + b"!")
    assert run_corpus(out, path=mine, sha256=SUM) == 1
    assert {path.name: path.read_bytes() for path in out.iterdir() if path.name != "log"} == before


def test_no_mirror_falls_back_to_pydoc_loudly(mirror, tmp_path, capsys):
    assert run_corpus(tmp_path, urls=[REFUSED, mirror.address + "/page"]) == 0
    record = json.loads((tmp_path / "corpus.json").read_text())
    text = (tmp_path / "text.txt").read_bytes().decode()
    assert (record["source"], record["fallback"], record["tiny_shakespeare"]) == ("pydoc", True, False)
    assert record["prompt"] == text[:7] and len(text) > 100_000
    corpus = Corpus.load(tmp_path / "text.txt", record, "ROMEO:\n")
    assert corpus.vocabulary.decode(corpus.prompt) == text[:7]
    assert "Please log in" not in text
    assert "NO MIRROR ANSWERED" in capsys.readouterr().err


def test_no_mirror_and_no_fallback(mirror, tmp_path, capsys):
    assert run_corpus(tmp_path, urls=[mirror.address + "/cut"], offline_fallback="none") == 1
    line = one_error(capsys)
    for way in ("corpus.offline_fallback is none", "with a network", "corpus.path or SPECLEDGER_CORPUS", "pydoc"):
        assert way in line
    assert kept(tmp_path) == []


def test_acquire_tells_the_users_error():
    with pytest.raises(UserError, match="no mirror answered"):
        acquire(
            {
                "path": None, "sha256": None, "offline_fallback": "none", "prompt": "a",
                "download": {"urls": [REFUSED], "sha256": SUM, "timeout_s": 0.3},
            },
            lambda line: None,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (TEXT[:100] + b"\xff" + TEXT[100:], "not UTF-8 text (byte 100 is 0xff)"),
        (TEXT[:60], "60 characters leave 6 for validation, at least 18 are needed (model.context 16 + 2)"),
        (b"", "0 characters leave 0 for training, at least 18 are needed"),
        (b"a" * 3000, "only one distinct character"),
        (TEXT.replace(b":", b";"), "lacks ':' of the prompt 'ROMEO:\\n'"),
    ],
    ids=["not-utf8", "short", "empty", "one-symbol", "prompt"],
)
def test_unusable_file_is_refused_in_one_line(raw, reason, tmp_path, capsys):
    mine, out = tmp_path / "mine.txt", tmp_path / "out"
    mine.write_bytes(raw)
    assert run_corpus(out, path=mine) == 1
    line = one_error(capsys)
    assert "mine.txt" in line and reason in line
    assert kept(out) == []


def test_unreadable_file(tmp_path):
    for path in (tmp_path / "absent.txt", tmp_path):
        with pytest.raises(UserError, match=r"corpus\.path: .*; a readable UTF-8 text file is needed"):
            from_file(path, None)


def test_room_for_the_acceptance_positions():
    check_usable("ab" * 500, name="f", context=16, validation_fraction=0.1, prompt="a", positions=84)
    with pytest.raises(UserError, match="leave 100 for validation, at least 101 are needed"):
        check_usable("ab" * 500, name="f", context=16, validation_fraction=0.1, prompt="a", positions=85)


@pytest.mark.parametrize(("characters", "fraction", "split"), [(1_115_394, 0.1, 1_003_854), (10, 0.5, 5), (3, 0.1, 2)])
def test_split_sizes(characters, fraction, split):
    assert split_point(characters, fraction) == split


def test_vocabulary_is_in_code_point_order_and_names_what_it_lacks():
    vocabulary = Vocabulary.of("ba\n\N{GREEK SMALL LETTER GAMMA}a")
    assert vocabulary.symbols == ("\n", "a", "b", "γ") and len(vocabulary) == 4
    assert vocabulary.encode("aγ").tolist() == [1, 3] and vocabulary.decode([1, 3]) == "aγ"
    with pytest.raises(UserError, match="'xa' has characters that the corpus lacks: 'x'"):
        vocabulary.encode("xa")


def test_line_ends_are_kept(tmp_path):
    mine = tmp_path / "mine.txt"
    mine.write_bytes(TEXT.replace(b"\n", b"\r\n"))
    assert run_corpus(tmp_path / "out", path=mine) == 0
    assert (tmp_path / "out" / "text.txt").read_bytes() == mine.read_bytes()
    assert "\r" in decode_utf8(mine.read_bytes(), "mine.txt")
    record = json.loads((tmp_path / "out" / "corpus.json").read_text())
    Corpus.load(tmp_path / "out" / "text.txt", record)


def test_a_tilde_is_the_home_and_a_name_that_no_file_can_have_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "mine.txt").write_text("a play")
    assert from_file(Path("~/mine.txt"), None) == b"a play"
    for name in ("a\0b", "\ud800", "a" * 5000):
        with pytest.raises(UserError, match=r"^corpus\.path: .{1,300}; a readable UTF-8 text file is needed$"):
            from_file(Path(name), None)
