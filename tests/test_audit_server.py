"""The whole audit over HTTP against a stand-in server of ours: right, wrong in six ways, and ill-behaved."""

import csv
import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from specledger.audit.greedy import GreedyText, changed_fields, compare, margin_at, parting_place
from specledger.audit.repeats import repeated
from specledger.audit.standin import FAULTS, TinyDecoder, TinyModel
from specledger.audit.standin_server import StandInServer
from specledger.audit.systems import http
from specledger.audit.systems.http import Http
from specledger.commands.run import main
from specledger.foundation.errors import UserError

MODEL = TinyModel.made(0)


def served(fault=None, *, gamma=3, **options):
    return StandInServer(TinyDecoder(MODEL, gamma=gamma, fault=fault), **options)


@pytest.fixture(scope="module")
def _plain():
    with served(gamma=0) as server:
        yield server


@pytest.fixture
def plain(_plain):
    _plain.asked.clear()
    return _plain


def audit(tmp_path, plain, server, *more, texts=800, prompt="the"):
    """The exit code of an audit of two servers."""
    urls = ["--url", server.url, "--baseline-url", plain.url]
    prompts = ["--prompt", prompt] if prompt else []
    return main(["audit", *urls, *prompts, "--texts", str(texts), "--out", str(tmp_path / "out"), *more])


def rows_of(tmp_path):
    return list(csv.DictReader((tmp_path / "out" / "audit.csv").open(encoding="utf-8")))


# ---- right, and wrong in six ways


@pytest.mark.parametrize("fault", [*FAULTS, None])
def test_a_server_is_judged_by_what_it_serves(tmp_path, plain, fault, capsys):
    with served(fault) as server:
        code = audit(tmp_path, plain, server, "--no-controls", texts=2000)
    assert code == (1 if fault else 0), capsys.readouterr()
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert ("The distribution departs" in page) == bool(fault)
    if fault == "one-seed":
        assert "starts requests from the same seed" in page


def test_controls_come_out_and_are_shown(tmp_path, plain, capsys):
    with served() as server:
        assert audit(tmp_path, plain, server, "--top-k", "8", "--temperature", "0.8") == 0
    found = {row["mode"]: (row["verdict"], row["control"], row["top_k"]) for row in rows_of(tmp_path)}
    assert found == {
        "speculative": ("kept", "", "8"),
        "plain against itself": ("kept", "null", "8"),
        "spoilt texts": ("departs", "lossy", "8"),
    }
    assert all(
        asked["top_k"] == 8 and asked["temperature"] == 0.8 for asked in server.asked if asked.get("max_tokens") == 6
    )
    assert "kept: nearer than TV" in capsys.readouterr().out
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert "http://" not in page.replace(server.url, "").replace(plain.url, "") and "https://" not in page
    assert "specledger audit --url" in page


def test_a_run_whose_plain_arm_is_unsteady_is_undecided(tmp_path):
    """The plain server changes its ways in the middle: the null control departs, and nothing is concluded."""

    class Moody(TinyDecoder):
        calls = 0

        def sample(self, prompt_ids, count, settings):
            Moody.calls += 1
            self.fault = "always" if Moody.calls % 2 else None
            return super().sample(prompt_ids, count, settings)

    with StandInServer(Moody(MODEL)) as moody:
        # Every request of odd number is wrong: the two arms of the null control are asked in turn, whole looks each.
        options = ["--baseline-body", "{}", "--parallel", "1", "--per-request", "400", "--texts", "600"]
        code = main(["audit", "--url", moody.url, *options, "--prompt", "the", "--out", str(tmp_path / "out")])
    assert code == 2
    assert "This run can’t be trusted." in (tmp_path / "out" / "index.html").read_text(encoding="utf-8")


# ---- what a server tells of its tokens


@pytest.mark.parametrize(
    ("tells", "more", "kind"),
    [
        ("logprobs", [], "logprobs"),
        ("text", ["--tokenizer", "characters"], "characters"),
        ("ids", ["--chat"], "token ids"),
    ],
)
def test_tokens_are_read_as_the_server_tells_them(tmp_path, tells, more, kind, capsys):
    with served(gamma=0, tells=tells) as plain, served("always", tells=tells) as server:
        assert audit(tmp_path, plain, server, "--no-controls", *more) == 1
    assert f"tokens are read by {kind}" in capsys.readouterr().err


def test_a_server_that_tells_no_tokens(tmp_path, capsys):
    with served(gamma=0, tells="text") as plain, served(tells="text") as server:
        assert audit(tmp_path, plain, server) == 3
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "specledger audit:" in line]
    assert "neither token ids nor log-probabilities" in line and "--tokenizer characters" in line


def test_a_server_that_gives_one_text_a_request(tmp_path, plain):
    with served("always", many=False) as server:
        assert audit(tmp_path, plain, server, "--no-controls", texts=300) == 1
    assert all(asked.get("n", 1) == 1 for asked in server.asked[2:])


def test_a_server_that_takes_few_texts_a_request(tmp_path, plain):
    """As llama.cpp's does, whose n is at most the number of its slots."""
    with served("always", most_texts=4) as server:
        assert audit(tmp_path, plain, server, "--no-controls", texts=300) == 1
    sizes = [asked.get("n", 1) for asked in server.asked]
    first = sizes.index(32)
    assert sizes[first : first + 4] == [32, 16, 8, 4] and max(sizes[first + 4 :]) == 4


# ---- ill-behaved servers: one line each, exit code 3


def said(capsys):
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("specledger audit:")]
    return line


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_no_server(tmp_path, plain, capsys):
    url = f"http://127.0.0.1:{free_port()}/v1"
    assert main(["audit", "--url", url, "--baseline-url", plain.url, "--out", str(tmp_path)]) == 3
    assert f"{url}: no server answers there" in said(capsys)


def test_a_wrong_model_name(tmp_path, plain, capsys):
    with served() as server:
        assert audit(tmp_path, plain, server, "--model", "large") == 3
    assert "no model large; it has: tiny" in said(capsys)


def test_fewer_tokens_than_asked(tmp_path, plain, capsys):
    with served(most_tokens=3) as server:
        assert audit(tmp_path, plain, server) == 3
    assert "cut at 3 tokens where 6 were asked for" in said(capsys)


def test_texts_that_end_early_are_no_fault(tmp_path):
    ending = TinyModel.made(0, end=3)
    with StandInServer(TinyDecoder(ending, gamma=0)) as plain, StandInServer(TinyDecoder(ending)) as server:
        assert audit(tmp_path, plain, server, "--no-controls") == 0
    assert "lengths" in {row["test"] for row in rows_of(tmp_path)}


def test_a_busy_server_is_asked_again(tmp_path, plain):
    with served(busy=5) as server:
        assert audit(tmp_path, plain, server, "--no-controls", texts=200) == 0
    assert len(server.asked) > 5


def test_a_timeout_keeps_what_was_sampled_and_the_same_command_goes_on(tmp_path, plain, capsys, monkeypatch):
    monkeypatch.setattr(http, "TRIES", 1)
    with served(hangs=9, hang_s=4.0) as server:
        first = audit(tmp_path, plain, server, "--no-controls", "--timeout", "2", "--parallel", "1", texts=400)
        line = said(capsys)
        asked = [json.dumps(one) for one in plain.asked if one.get("max_tokens") == 6]
        plain.asked.clear()
        assert first == 3 and "no answer within 2 s" in line and "texts are kept, and the same command" in line
        assert not (tmp_path / "out" / "index.html").exists()
        server.hangs = None
        assert audit(tmp_path, plain, server, "--no-controls", "--parallel", "1", texts=400) == 0
    assert "going on with" in capsys.readouterr().err
    later = [json.dumps(one) for one in plain.asked if one.get("max_tokens") == 6]
    assert asked and later and not set(asked) & set(later)  # nothing is asked for twice
    assert not (tmp_path / "out" / "unfinished.jsonl").exists() and (tmp_path / "out" / "texts.jsonl").exists()


def test_a_plain_server_that_repeats_its_texts(tmp_path, capsys):
    with served("one-seed") as plain, served() as server:
        assert audit(tmp_path, plain, server) == 3
    assert "the plain server: " in (line := said(capsys)) and "starts requests from the same seed" in line


class _Elsewhere(BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path.endswith("/models"):
            self.send_response(302)
            self.send_header("Location", "http://127.0.0.1:1/")
            self.end_headers()
        else:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<html>hello</html>")

    do_POST = do_GET

    def log_message(self, *_):
        pass


def test_no_address_but_the_user_s_is_asked(monkeypatch):
    """A redirect is not followed, and the environment's proxy is not used."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    server = HTTPServer(("127.0.0.1", 0), _Elsewhere)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    asked = Http(f"http://127.0.0.1:{server.server_address[1]}/v1")
    with pytest.raises(UserError, match="only the address that was given is asked"):
        asked.ask("/models")
    with pytest.raises(UserError, match="not JSON"):
        asked.ask("/other", {})
    server.shutdown()
    server.server_close()


def test_a_connection_that_breaks_off(monkeypatch, capsys):
    monkeypatch.setattr(http, "TRIES", 2)
    with socket.create_server(("127.0.0.1", 0)) as door:
        threading.Thread(target=lambda: [door.accept()[0].close() for _ in range(2)], daemon=True).start()
        with pytest.raises(UserError, match=r"the connection fails .*2 times"):
            Http(f"http://127.0.0.1:{door.getsockname()[1]}").ask("/models")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "either --url of a server or --system"),
        (["--url", "http://127.0.0.1:1/v1"], "--baseline-url, or --baseline-body"),
        (["--url", "ftp://x", "--baseline-url", "ftp://x"], "not an address"),
        (["--url", "x", "--baseline-url", "x", "--temperature", "-1"], "--temperature must be at least 0, got -1"),
        (["--url", "x", "--baseline-url", "x", "--top-p", "2"], "--top-p must lie in"),
        (["--url", "x", "--baseline-url", "x", "--level", "2"], "--level must lie in"),
        (["--url", "x", "--baseline-url", "x", "--tv", "2"], "--tv must lie in"),
        (["--url", "x", "--baseline-url", "x", "--texts", "0"], "must be at least 1, got 0"),
        (["--url", "x", "--baseline-url", "x", "--body", "[1]"], "must be a JSON object"),
        (["--url", "x", "--baseline-url", "x", "--key-env", "NO_SUCH_KEY"], "the environment has no such variable"),
        (["--url", "x", "--baseline-url", "x", "--prompts", "nowhere.txt"], "--prompts nowhere.txt: No such file"),
        (["--config", "nowhere.yaml"], "--config nowhere.yaml: No such file"),
        (["--nonsense"], "unrecognized arguments"),
    ],
)
def test_bad_options_are_one_line(arguments, message, capsys, tmp_path):
    try:
        code = main(["audit", "--out", str(tmp_path), *arguments])
    except SystemExit as stopped:
        code = stopped.code
    line = said(capsys)
    assert code == 3 and message in line


def test_a_config_file_has_the_options_by_name(tmp_path, plain, capsys):
    config = tmp_path / "audit.yaml"
    with served("always") as server:
        config.write_text(
            f"url: {server.url}\nbaseline_url: {plain.url}\nprompt: [the, 'on']\ntexts: 400\nno-controls: true\n"
            f"body: {{top_k: 9}}\nout: {tmp_path / 'out'}\n"
        )
        assert main(["audit", "--config", str(config)]) == 1
        assert server.asked[-1]["top_k"] == 9
    assert {row["prompt"] for row in rows_of(tmp_path)} == {"the", "on"}
    for text, message in (
        ("urls: x", "no option urls"),
        ("[1", "not YAML"),
        ("texts: many", "texts"),
        ("prompt: [on]", "in quotes"),
        ("a", "by name"),
    ):
        config.write_text(text)
        assert main(["audit", "--config", str(config)]) == 3
        assert message in said(capsys)


def test_prompts_of_a_file(tmp_path, plain):
    path = tmp_path / "prompts.jsonl"
    path.write_text('{"prompt": "the"}\n{"messages": [{"role": "user", "content": "on"}]}\n')
    with served() as server:
        assert (
            audit(tmp_path, plain, server, "--prompts", str(path), "--chat", "--no-controls", prompt="", texts=100) == 0
        )
    assert {row["prompt"] for row in rows_of(tmp_path)} == {"the", "on"}
    path.write_text('{"text": "the"}\n')
    assert audit(tmp_path, plain, server, "--prompts", str(path), prompt="") == 3


# ---- greedy texts


def test_greedy_texts_of_a_right_server_are_the_same(tmp_path):
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("\n".join(["the cat", "on a", "tea", "rat", "sin", "sea"]))
    options = ["--greedy", "--prompts", str(prompts), "--tokens", "30"]
    with served(gamma=0, tells="logprobs") as plain, served(tells="logprobs") as server:
        assert audit(tmp_path, plain, server, *options, prompt="") == 0
    with served(gamma=0, tells="logprobs") as plain, served("always", tells="logprobs") as server:
        assert audit(tmp_path, plain, server, *options, prompt="") == 1
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    found = json.loads((tmp_path / "out" / "audit.json").read_text(encoding="utf-8"))["rows"][0]["greedy"]
    assert found["again"] == 0 and "fault" in {one["kind"] for one in found["partings"]}
    assert "95% interval" in page


def top(*tokens):
    """Tokens with the log-probabilities of themselves and of one other, as (token, other, margin)."""
    return [(token, -0.5, {token: -0.5, other: -0.5 - margin}) for token, other, margin in tokens]


PLAIN = GreedyText(text="a cat sat", top=top(("a", "b", 3), (" cat", " dog", 0.01), (" sat", " lay", 2.0)))


@pytest.mark.parametrize(
    ("other", "margin", "kind"),
    [("a dog ran", 0.01, "rounding"), ("a cat lay", 2.0, "fault"), ("a cow", 0.01, "rounding")],
)
def test_the_margin_where_texts_part(other, margin, kind):
    found = compare([PLAIN], [GreedyText(text=other)])
    assert found.partings[0].margin == pytest.approx(margin) and found.partings[0].kind == kind


def test_a_margin_that_is_not_told_counts_as_a_fault():
    found = compare([GreedyText(text="ab")], [GreedyText(text="ac")])
    assert found.partings[0].kind == "unknown" and found.faults == 1
    assert margin_at(PLAIN, "a cat sat down", 9) is None and parting_place("ab", "abc") == 2


def test_fields_of_json_outputs():
    one = '{"name": "book", "arguments": {"city": "Bern", "days": [1, 2]}}'
    two = '```json\n{"name": "book", "arguments": {"city": "Bonn", "days": [1, 3]}}\n```'
    assert changed_fields(one, two) == ("arguments.city", "arguments.days[]")
    assert changed_fields(one, "I can't") == ("not JSON",) and changed_fields("x", "y") == ()


def several(parted, n, *, allowed, again=0):
    same, other = GreedyText(text="x"), GreedyText(text="y")
    plain = [same] * n
    return compare(
        plain,
        [other] * parted + [same] * (n - parted),
        allowed_rate=allowed,
        again=[other] * again + [same] * (n - again),
    ).verdict()[0]


@pytest.mark.parametrize(
    ("parted", "n", "allowed", "again", "verdict"),
    [
        (0, 50, 0.0, 0, "kept"),
        (1, 50, 0.0, 0, "departs"),
        (1, 50, 0.02, 0, "kept"),
        (2, 50, 0.02, 0, "undecided"),  # .04, but 50 prompts can't tell it from .02
        (10, 50, 0.02, 0, "departs"),
        (5, 50, 0.0, 5, "undecided"),  # the plain arm parts from itself as often
    ],
)
def test_the_allowed_rate_decides(parted, n, allowed, again, verdict):
    assert several(parted, n, allowed=allowed, again=again) == verdict


def test_repeats_are_told_from_texts_that_are_alike_by_chance():
    import numpy as np

    random = np.random.default_rng(0)
    few = random.choice(4, p=[0.7, 0.1, 0.1, 0.1], size=(900, 2))
    assert repeated(few, 32) == repeated(few, 1) == repeated(np.zeros((500, 6), dtype=int), 1) == ""
    assert "600 of 600" not in repeated(random.integers(9, size=(600, 6)), 30)
    block = random.choice(4, p=[0.7, 0.1, 0.1, 0.1], size=(30, 2))
    assert "same seed" in repeated(np.tile(block, (20, 1)), 30)


def test_many_prompts_together_show_what_each_alone_does_not(tmp_path, plain):
    """Twelve prompts with 100 texts each: the chi-squares add up, and the fault is seen where one prompt shows none."""
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("\n".join(["tea", "on", "hat", "sin", "rat", "son", "ten", "ash", "ear", "inn", "oat", "toe"]))
    options = ["--prompts", str(prompts), "--together", "--no-controls"]
    with served("residual") as server:
        assert audit(tmp_path, plain, server, *options, prompt="", texts=2400) == 1
    rows = rows_of(tmp_path)
    assert {row["prompt"] for row in rows} == {"12 prompts together"} and {row["test"] for row in rows} >= {"token 1"}
    with served() as server:
        assert audit(tmp_path, plain, server, *options, prompt="", texts=1200) == 0
