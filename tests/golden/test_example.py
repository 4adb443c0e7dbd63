"""The record's worked example, computed from its definition a second time: bytes that must never change."""
import json
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "lib"))

import proof  # noqa: E402

KEY = "a97714f129ea975fdcb2f1a8ed9d4087"
VALUE = (b'{"version":1,"turn_id":"a97714f129ea975fdcb2f1a8ed9d4087","origin":"coordinator","service":"claude",'
         b'"role":"reviewer","task_id":"t-41","task_rev":7,"run_id":"r-9","epoch":1,"intent":"review","key":"r-9.1.2",'
         b'"parent":"","created_at":"2026-11-29T14:20:43.120Z","expires_at":"2026-12-06T14:20:43.120Z",'
         b'"summary":"Review fix.diff","data":{},"payload":{"media_type":"text/plain","text":"hello"}}')
SIGNATURE = ("1 06e3fd8fda29bb60 ec8f7b7c3b18f8d960f027c5f4b119f718608b131d0040994d62b1efccecb185ec95718d99661933527285328310f79e"
             "57ec2852a3539b4682d0b82a232c6008")
PASS = ("1 2 claude codex-review 1 0 0 auth 2026-11-29T14:20:44.020Z deb2ded39dc26fce 1ea462bf63f7b3a00672b89918723af650c165675525"
        "ab18fd2c929a474c438b34d3ed0f6aa81677300ac2cd1bf5e5df553eb03edf364875258466795220c50d")
ORIGIN = proof.Key.of_seed("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")  # RFC 8032, 7.1, test 1
SERVICE = proof.Key.of_seed("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")  # test 2


def test_value_and_digest():
    assert len(VALUE) == 390
    assert proof.sha256(VALUE).hex() == "e49971cb84165a932b50f4066edab16fc855f4ddf1b4e49daff933b4c819a917"


def test_turn_id_is_the_hash_of_the_identity():
    assert proof.turn_id("prod", json.loads(VALUE)) == KEY


def test_partition():
    assert proof.partition_of(KEY, 4) == 1


def test_the_origin_signs_102_bytes():
    assert len(proof.signed_bytes("prod", "turn", KEY, "", VALUE)) == 102
    assert proof.signed_bytes("prod", "turn", KEY, "", VALUE).startswith(bytes.fromhex("4241544f4e2d50524f4f462d310000000004"))
    assert proof.proof(ORIGIN, "prod", "turn", KEY, VALUE) == SIGNATURE


def test_the_pass_is_over_161_bytes():
    statement = PASS.rsplit(" ", 2)[0]
    assert len(proof.signed_bytes("prod", "pass", KEY, statement, VALUE)) == 161
    assert proof.pass_header(SERVICE, "prod", KEY, VALUE, 2, "codex-review", "claude", at="2026-11-29T14:20:44.020Z") == PASS


def test_the_document_shows_these_bytes():
    with open(os.path.join(ROOT, "common", "record", "RECORD.md"), encoding="utf-8") as file:
        text = re.sub(r"\s+", " ", file.read())
    for part in (VALUE.decode(), SIGNATURE[2:], PASS):
        assert part in text, part
