"""The program in rough hands: words that look like something else, lists that are long, what a sentence promises."""
import os

import pytest


@pytest.mark.drivers("local")
def test_h05_an_id_is_no_hidden_file(host):
    """H05: "." and ".." as an id would be another folder, and a hidden file is passed over by who lists files: refused before anything is made."""
    before = sorted(os.listdir(host.dir))
    for name in (".", "..", ".hidden"):
        host.run("worker", "--service", "alpha", "--id", name, "--drain", "--json").refused("invalid_request", 2)
        host.run("coordinator", "--id", name, "--json").refused("invalid_request", 2)
        host.run("keys", "generate", name, "--json").refused("invalid_request", 2)
    host.run("coordinator", "--id", "c" * 65, "--json").refused("invalid_request", 2)  # and not cut to one that another may have
    assert sorted(os.listdir(host.dir)) == before and not host.stores()
    assert not [name for folder in ("keys", "trust") for name in os.listdir(os.path.join(host.dir, folder)) if name.startswith(".")]
