"""`baton workflow`: what producer/WORKFLOW.md says of files, and how the verb behaves for people and scripts (H, I rows of files)."""
import json
import os
import re

import pytest

pytestmark = pytest.mark.drivers("local")
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

with open(os.path.join(ROOT, "producer", "WORKFLOW.md"), encoding="utf-8") as page:
    PAGE = page.read()


def block(kind):
    return re.search(rf"```{kind}\n(.*?)```", PAGE, re.S).group(1)


@pytest.fixture
def alone(fresh, tmp_path, monkeypatch):
    """A folder without a configuration; what is in a usual place of the machine must not matter either."""
    monkeypatch.delenv("BATON_CONFIG")
    folder = tmp_path / "alone"
    folder.mkdir()

    def run(*words, text=None):
        if text is not None:
            (folder / "w.yaml").write_text(text, encoding="utf-8")
            (folder / "w.yaml").chmod(0o644)
        return fresh.run(*words, cwd=str(folder))
    return run


def test_the_example_of_the_page_is_the_built_in_one(alone):
    """The YAML of WORKFLOW.md means what `paired-review` means, and its drawing is what the program draws."""
    shipped = alone("workflow", "graph", "paired-review", "--json").ok().one
    printed = alone("workflow", "graph", "w.yaml", "--json", text=block("yaml")).ok().one
    shipped.pop("digest"), printed.pop("digest")
    assert printed == shipped
    drawn = alone("workflow", "graph", "paired-review").ok().out
    assert drawn.split("\n", 1)[1] == block("text")
    shown = alone("workflow", "show", "paired-review").ok().out
    again = alone("workflow", "check", "w.yaml", text=shown).ok()
    assert again.out.startswith("ok w.yaml (paired-review, digest ") and not again.err


def test_the_page_names_every_key(alone):
    """Each key that the parser knows stands in the page, and no other: taken from what the program says of a wrong one."""
    with open(os.path.join(ROOT, "producer", "workflow", "tbl", "words.h"), encoding="utf-8") as file:
        words = re.findall(r"^    [A-Z]+\((\w+)", file.read(), re.M)
    known = set(words) - {"completed", "failed"}
    for name in ("transitions.c", "nodes.c", "hooks.c", "parse.c"):
        with open(os.path.join(ROOT, "producer", "workflow", name), encoding="utf-8") as file:
            for table in re.findall(r"_keys\[\] = \{(.*?)\};", file.read(), re.S):
                known |= set(re.findall(r'"(\w+)"', table))
    assert len(known) > 40
    assert not {word for word in known if f"`{word}`" not in PAGE}


def test_all_mistakes_at_once_with_line_and_column_and_exit_2(alone):
    text = block("yaml").replace("to: arbiter", "to: arbter").replace("[approve]", "[aprove]").replace("invoke: deny", "invoke: never")
    done = alone("workflow", "check", "w.yaml", text=text)
    assert done.status == 2
    lines = [line for line in done.out.splitlines() if line.startswith("error: ")]
    assert len(lines) == 3 and all(re.match(r"error: w\.yaml:\d+:\d+: ", line) for line in lines), done.out
    assert "did you mean 'arbiter'?" in done.out and "did you mean 'approve'?" in done.out
    machine = alone("workflow", "check", "w.yaml", "--json", text=text)
    found = json.loads(machine.out)
    assert machine.status == 2 and [len(one["findings"]) for one in found] == [3] and found[0]["code"] == "bad_config"


def test_warnings_do_not_fail(alone):
    """I37: a loop without a cap is told, and what holds all the same."""
    done = alone("workflow", "check", "w.yaml", text=re.sub(r", max_cycles: \d", "", block("yaml")))
    assert done.status == 0 and "lies on a loop without a cap; it is taken 6 times at most" in done.out, done
    assert "ok w.yaml" in done.out


def test_services_are_compared_with_the_configuration(host):
    """With a configuration: services that are not there, roles that are not served; files of `workflows:` without being named."""
    path = os.path.join(host.dir, "mine.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(block("yaml").replace("{role: owner}", "{role: owner, service: nobody}").replace("{role: reviewer}", "{role: reviewer, service: alpha}"))
    os.chmod(path, 0o644)
    done = host.run("workflow", "check", path)
    assert done.status == 2 and "nodes.owner: service nobody is not in the configuration" in done.out, done
    assert "nodes.reviewer" not in done.out
    assert "nodes.arbiter names no service, and the configuration has no chain for the role arbiter" in done.out
    nothing = host.run("workflow", "check")
    assert nothing.status == 2 and "no `workflows:`" in nothing.err


def test_names_and_files(alone, tmp_path):
    done = alone("workflow", "graph", "no-such")
    assert done.status == 2 and "`baton workflow list` names them" in done.err, done
    missing = alone("workflow", "graph", "./no-such.yaml")
    assert missing.status != 0 and "no-such.yaml" in missing.err
    listed = json.loads(alone("workflow", "list", "--json").ok().out)
    assert [(one["name"], one["where"]) for one in listed] == [("paired-review", "built in")]
    dot = alone("workflow", "graph", "paired-review", "--dot").ok().out
    assert dot.startswith('digraph "paired-review" {\n') and dot.endswith("}\n") and '"owner" -> "reviewer"' in dot
