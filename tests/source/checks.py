"""The house style as checks over the source tree. Each takes a root and returns findings.

A check is a function `check_NAME(root)` that yields lines `path:line: what is wrong`. BAD holds for
each a small tree that it must object to, so that no check can pass by never looking.
"""
import os
import re
import subprocess

PRODUCT = ("common", "topics", "producer", "worker", "deploy")
SKIPPED = {".git", "build", "data", "__pycache__", ".pytest_cache"}

# Who may include whom: a layer sees itself and what is listed (STYLE L1).
LAYERS = {
    "common/base": (),
    "common/record": ("common/base", "common/log"), # receipt checks a record of the log
    "common/process": ("common/base",),
    "common/http": ("common/base", "common/log"), # health asks whether the log is away
    "common/trace": ("common/base",),
    "common/sqlite": ("common/base",),
    "common/log": ("common/base", "common/sqlite"),
    "common/store": ("common/base", "common/record", "common/sqlite"),
    "common/engine": ("common/base", "common/record", "common/log", "common/store"),
}
COMMON = tuple(LAYERS)
LAYERS["topics"] = COMMON
LAYERS["producer"] = COMMON + ("topics",)
LAYERS["worker"] = COMMON + ("topics", "producer")
LAYERS["deploy"] = COMMON + ("topics", "producer", "worker")

# A library's header, and the only places that may include it.
LIBRARIES = {
    r"cjson/|cJSON\.h": ("common/record/json.c",),
    r"openssl/": ("common/record/",),
    r"sqlite3\.h": ("common/sqlite/", "common/store/", "common/log/local/"),
    r"yaml\.h": ("common/base/yaml_tree.c",),
    r"librdkafka/": ("common/log/kafka/",),
    r"microhttpd\.h": ("common/http/listen.c",),
    r"curl/": ("common/trace/collector.c",),
}
BANNED = ("system", "popen", "strcpy", "strcat", "sprintf", "vsprintf", "gets", "strtok", "tmpnam",
          "mktemp", "alloca", "atoi", "atol", "assert")
ENVIRONMENT = {"BATON_CONFIG", "BATON_MODE", "BATON_FAULT", "BATON_ATTEMPT"}
LINES_MAX = 600


def files(root):
    """Paths below root that belong to the project, relative to it."""
    listing = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard", "-z"],
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    if listing.returncode == 0 and os.path.isdir(os.path.join(root, ".git")):
        names = [os.fsdecode(name) for name in listing.stdout.split(b"\0") if name]
    else:
        names = []
        for where, folders, found in os.walk(root):
            folders[:] = [folder for folder in folders if folder not in SKIPPED]
            names += [os.path.relpath(os.path.join(where, name), root) for name in found]
    return sorted(name for name in names if os.path.isfile(os.path.join(root, name)))


def product(root, *endings):
    return [name for name in files(root) if name.split("/")[0] in PRODUCT and name.endswith(endings)]


def read(root, name):
    with open(os.path.join(root, name), encoding="utf-8", errors="surrogateescape", newline="") as file:
        return file.read()


TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def code_of(text, keep_strings=False):
    """The text with comments (and strings) blanked, lines kept."""
    def blank(match):
        part = match.group(0)
        if part[0] == '"' and keep_strings:
            return part
        return re.sub(r"[^\n]", " ", part) if part[0] == "/" else part[0] + part[0]
    return TOKEN.sub(blank, text)


def strings_of(text):
    """(line, literal) of every string literal, neighbours joined as the compiler joins them."""
    clean = code_of(text, keep_strings=True)
    for match in re.finditer(r'"(?:\\.|[^"\\\n])*"(?:\s*"(?:\\.|[^"\\\n])*")*', clean):
        parts = re.findall(r'"((?:\\.|[^"\\\n])*)"', match.group(0))
        yield clean.count("\n", 0, match.start()) + 1, "".join(parts)


def includes(text):
    for number, line in enumerate(text.split("\n"), 1):
        match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if match:
            yield number, match.group(1) == '"', match.group(2)


def layer_of(root, name):
    if name.startswith("baton/"):
        for part in PRODUCT:
            if os.path.exists(os.path.join(root, part, "include", name)):
                return "common/base" if part == "common" else part
        return None
    if name.startswith("common/include/"):
        return "common/base"
    parts = name.split("/")
    folder = "/".join(parts[:2]) if parts[0] == "common" else parts[0]
    return folder if folder in LAYERS else None


# ---- the checks ----

def check_direction_of_includes(root):
    for name in product(root, ".c", ".h"):
        mine = layer_of(root, name)
        if mine is None:
            yield f"{name}:1: lies in no layer; the layers are {', '.join(LAYERS)}"
            continue
        for line, quoted, target in includes(read(root, name)):
            if not quoted:
                continue
            theirs = layer_of(root, target)
            if theirs is None:
                yield f'{name}:{line}: "{target}" names no folder of the project (STYLE L2)'
            elif theirs != mine and theirs not in LAYERS[mine]:
                yield f"{name}:{line}: {mine} may not include {theirs} ({target})"


def check_libraries_have_one_place(root):
    for name in product(root, ".c", ".h"):
        for line, _, target in includes(read(root, name)):
            for pattern, places in LIBRARIES.items():
                if re.match(pattern, target) and not name.startswith(places):
                    yield f"{name}:{line}: only {', '.join(places)} may include {target}"


def check_banned_calls(root):
    pattern = re.compile(r"(?<![\w.>])(" + "|".join(BANNED) + r")\s*\(")
    for name in product(root, ".c", ".h"):
        for number, line in enumerate(code_of(read(root, name)).split("\n"), 1):
            match = pattern.search(line)
            if match:
                yield f"{name}:{number}: {match.group(1)}() is not used here"


def check_processes_have_one_place(root):
    for name in product(root, ".c", ".h"):
        if name.startswith(("common/process/", "worker/bench/")):  # the measurements fork workers of their own
            continue
        for number, line in enumerate(code_of(read(root, name)).split("\n"), 1):
            if re.search(r"(?<![\w.>])(v?fork|posix_spawnp?|execv?[lpe]*|clone)\s*\(", line):
                yield f"{name}:{number}: processes are started in common/process only"


def check_environment_is_not_configuration(root):
    for name in product(root, ".c", ".h"):
        for number, line in enumerate(code_of(read(root, name), keep_strings=True).split("\n"), 1):
            for variable in re.findall(r'getenv\s*\(\s*"(BATON_\w+)"', line):
                if variable not in ENVIRONMENT:
                    yield f"{name}:{number}: {variable} is read, only {', '.join(sorted(ENVIRONMENT))} may be"


def check_no_sql_in_c(root):
    pattern = re.compile(r"^\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|DROP|ALTER|REPLACE)\s|"
                         r"^\s*(select .* from|insert into|update \w+ set|delete from|"
                         r"create (table|index|trigger|view|unique))\b", re.S)
    for name in product(root, ".c", ".h"):
        for line, text in strings_of(read(root, name)):
            if pattern.match(text):
                yield f"{name}:{line}: SQL belongs in a .sql file (STYLE Q1)"


def check_role_is_switched_in_one_file(root):
    for name in product(root, ".c", ".h"):
        if os.path.basename(name) == "role.c":
            continue
        for number, line in enumerate(code_of(read(root, name)).split("\n"), 1):
            if re.search(r"switch\s*\([^)]*\brole\b\s*\)|case ROLE_\w+\s*:", line):
                yield f"{name}:{number}: a switch over the role stands in role.c only (STYLE S5)"


def check_pipeline_maps(root):
    """What the opening comment names behind In: and Out: is there: files by their path, or by their name beside it."""
    for name in product(root, ".c", ".h"):
        text = read(root, name)
        opening = text[:text.find("*/")] if text.startswith("/*") else ""
        folder = os.path.dirname(name)
        places = [root, os.path.join(root, folder)] + [os.path.join(root, part, "include") for part in PRODUCT]
        for match in re.finditer(r"\b(In|Out):((?:(?!\b(?:In|Out):|\n \*\n).)*)", opening, re.S):
            number = opening[:match.start()].count("\n") + 1
            for path in re.findall(r"[\w.-]+(?:/[\w.-]+)+|[\w-]+\.[ch]\b", match.group(2)):
                path = path.rstrip(".")
                if not any(os.path.exists(os.path.join(place, path + end))
                           for place in places for end in ("", ".c", ".h")):
                    yield f"{name}:{number}: {match.group(1)}: names {path}, which is not there"


def check_files_say_what_they_are(root):
    for name in product(root, ".c", ".h"):
        if not read(root, name).startswith("/*"):
            yield f"{name}:1: begins without a comment that says what it does"


def check_no_pragma(root):
    for name in product(root, ".c", ".h"):
        for number, line in enumerate(code_of(read(root, name)).split("\n"), 1):
            if re.match(r"\s*#\s*pragma|.*\b_Pragma\b", line):
                yield f"{name}:{number}: a pragma"


def check_nothing_left_undone(root):
    pattern = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")
    for name in product(root, ".c", ".h", ".sql", ".sh", ".txt", ".yaml"):
        text = read(root, name)
        if name.endswith((".c", ".h")):  # what a string says is no note
            text = TOKEN.sub(lambda match: match.group(0) if match.group(0)[0] == "/" else "", text)
        for number, line in enumerate(text.split("\n"), 1):
            if pattern.search(line):
                yield f"{name}:{number}: something is left undone"


def check_no_paths_of_a_build_machine(root):
    pattern = re.compile(r"(?<![\w.])/(wo" r"rk|ro" r"ot|home/(?!alice\b|user\b)\w+)/|\.\./sha" r"red\b")
    for name in files(root):
        for number, line in enumerate(read(root, name).split("\n"), 1):
            if pattern.search(line):
                yield f"{name}:{number}: a path of one machine: {line.strip()[:80]}"


def check_line_endings(root):
    for name in files(root):
        text = read(root, name)
        if "\r" in text and not name.startswith(("tests/golden/", "tests/fuzz/corpus/")):
            yield f"{name}:{text.count(chr(10), 0, text.index(chr(13))) + 1}: a carriage return"


def check_codes_are_unique(root):
    name = "common/include/baton/codes_table.h"
    seen = {}
    for number, line in enumerate(read(root, name).split("\n"), 1):
        match = re.match(r"\s*CODE\(\s*(\d+)\s*,\s*(\w+)\s*,", line)
        for key in match.groups() if match else ():
            if key in seen:
                yield f"{name}:{number}: {key} stands on line {seen[key]} too"
            seen[key] = number


def check_words_have_one_list(root):
    """No .c file repeats a list that a table holds: three words of it in one initialiser."""
    lists = {
        "states": {"queued", "running", "parked", "delegated", "completed", "cancelled"},
        "roles": {"owner", "reviewer", "arbiter"},
    }
    for name in product(root, ".c"):
        text = code_of(read(root, name), keep_strings=True)
        for match in re.finditer(r"=\s*\{[^{};]*\}", text):
            words = set(re.findall(r'"(\w+)"', match.group(0)))
            for what, members in lists.items():
                if len(words & members) >= 3:
                    line = text.count("\n", 0, match.start()) + 1
                    yield f"{name}:{line}: repeats the list of {what}; it stands in common/base/tbl (STYLE L5)"


def compiler_flags(root):
    flags = ["-D_GNU_SOURCE", "-DBATON_VERSION=\"0\"", "-I", root]
    for part in PRODUCT:
        if os.path.isdir(os.path.join(root, part, "include")):
            flags += ["-I", os.path.join(root, part, "include")]
    build = os.environ.get("BATON_BUILD")
    for folder in [build] if build else [os.path.join(root, "build", p) for p in ("dev", "release", "asan")]:
        if folder and os.path.isdir(os.path.join(folder, "generated")):
            flags += ["-I", os.path.join(folder, "generated")]
    return flags


def compile_header(root, name, compiler):
    done = subprocess.run(compiler + ["-fsyntax-only", "-Wall", "-Wextra", "-Werror"] +
                          compiler_flags(root) + ["-include", os.path.join(root, name), "-"],
                          input=b"extern int baton_sample;\n", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        lines = done.stderr.decode("utf-8", "replace").strip().split("\n")
        first = next((line for line in lines if "error" in line), lines[0])
        yield f"{name}:1: does not compile alone with {' '.join(compiler)}: {first}"


def check_headers_compile_alone(root):
    for name in product(root, ".h"):
        yield from compile_header(root, name, ["gcc", "-std=c11", "-x", "c"])


def check_public_headers_are_clean(root):
    for name in product(root, ".h"):
        if "/include/baton/" in name:
            yield from compile_header(root, name, ["gcc", "-std=c99", "-pedantic", "-x", "c"])
            yield from compile_header(root, name, ["g++", "-std=c++17", "-pedantic", "-x", "c++"])


def check_guards(root):
    for name in product(root, ".h"):
        text = code_of(read(root, name))
        first = re.search(r"^\s*#\s*ifndef\s+(\w+)\s*\n\s*#\s*define\s+(\w+)\s*$", text, re.M)
        if not first or first.group(1) != first.group(2) or not first.group(1).startswith("BATON_"):
            yield f"{name}:1: has no guard BATON_…_H (STYLE H1)"


def long_files(root):
    """Not a fault: files in which a second subject may hide."""
    for name in product(root, ".c", ".h"):
        lines = read(root, name).count("\n")
        if lines > LINES_MAX:
            yield f"{name}: {lines} lines"


CHECKS = {name[6:]: function for name, function in list(globals().items()) if name.startswith("check_")}

# ---- what each must object to ----

HEAD = "/* A sample. */\n"
BAD = {
    "direction_of_includes": [
        {"common/base/a.c": HEAD + '#include "common/record/b.h"\n'},
        {"common/store/a.c": HEAD + '#include "common/engine/b.h"\n'},
        {"producer/a.c": HEAD + '#include "worker/b.h"\n'},
        {"topics/a.h": HEAD + '#include "baton/publish.h"\n', "producer/include/baton/publish.h": HEAD},
        {"worker/a.c": HEAD + '#include "settle.h"\n'},
        {"common/a.c": HEAD},
    ],
    "libraries_have_one_place": [
        {"worker/a.c": HEAD + "#include <sqlite3.h>\n"},
        {"common/record/turn.c": HEAD + "#include <cjson/cJSON.h>\n"},
        {"common/base/config.c": HEAD + "#include <yaml.h>\n"},
        {"common/store/a.h": HEAD + "#include <openssl/evp.h>\n"},
        {"common/engine/a.c": HEAD + "#include <librdkafka/rdkafka.h>\n"},
    ],
    "banned_calls": [{"worker/a.c": HEAD + f"void f(void)\n{{\n    {call}(x);\n}}\n"}
                     for call in ("system", "strcpy", "sprintf", "gets", "strtok", "strcat", "popen", "assert")],
    "processes_have_one_place": [{"worker/a.c": HEAD + "int f(void) { return fork(); }\n"},
                                 {"producer/a.c": HEAD + "int f(void) { return execve(a, b, c); }\n"}],
    "environment_is_not_configuration": [{"worker/a.c": HEAD + 'char *s = getenv("BATON_ROLE");\n'}],
    "no_sql_in_c": [{"worker/a.c": HEAD + 'const char *q = "SELECT "\n    "a FROM b";\n'},
                    {"common/store/a.c": HEAD + 'const char *q = "delete from turns";\n'}],
    "role_is_switched_in_one_file": [{"worker/a.c": HEAD + "switch (turn->role) {\n"}],
    "pipeline_maps": [{"worker/a.c": "/*\n * A sample.\n * In: worker/nowhere.c\n */\n"},
                      {"worker/a.c": "/*\n * A sample.\n * Out: common/log/nothing\n */\n"},
                      {"worker/a.c": "/*\n * A sample.\n * In: worker/a.c,\n * gone.c\n */\n"}],
    "files_say_what_they_are": [{"worker/a.c": "#include <stdio.h>\n"}],
    "no_pragma": [{"worker/a.c": HEAD + "#pragma GCC diagnostic ignored \"-Wall\"\n"}],
    "nothing_left_undone": [{"worker/a.c": HEAD + "/* TO" "DO: later */\n"}],
    "no_paths_of_a_build_machine": [{"README.md": "see /wo" "rk/main/x\n"}, {"a.sh": "cat ../sha" "red/x\n"}],
    "line_endings": [{"README.md": "a\r\nb\n"}],
    "codes_are_unique": [
        {"common/include/baton/codes_table.h": 'CODE(1, a, ok, 0, "")\nCODE(1, b, ok, 0, "")\n'},
        {"common/include/baton/codes_table.h": 'CODE(1, a, ok, 0, "")\nCODE(2, a, ok, 0, "")\n'}],
    "words_have_one_list": [{"worker/a.c": HEAD + 'static const char *r[] = {"owner", "reviewer", "arbiter"};\n'}],
    "headers_compile_alone": [{"worker/a.h": HEAD + "size_t f(void);\n"}],
    "public_headers_are_clean": [{"producer/include/baton/a.h": HEAD + "int f(int class);\n"},
                                 {"producer/include/baton/a.h": HEAD + "#include <stdint.h>\ninline int f(void) { return 0; };;\n"}],
    "guards": [{"worker/a.h": HEAD + "int f(void);\n"},
               {"worker/a.h": HEAD + "#ifndef BATON_A_H\n#define BATON_B_H\n#endif\n"}],
}
GOOD = {
    "common/base/a.h": HEAD + "#ifndef BATON_BASE_A_H\n#define BATON_BASE_A_H\nint a_get(void);\n#endif\n",
    "common/include/baton/codes_table.h": HEAD + "#ifndef BATON_CODES_TABLE_H\n#define BATON_CODES_TABLE_H\n"
                                                 '/* CODE(1, ok, ok, 0, "x") */\n#endif\n',
    "worker/a.c": "/*\n * A sample: system(), fork() and strcpy(x) in a comment are none.\n"
                  " * In: worker/b.c\n * Out: common/base/a\n */\n"
                  '#include "common/base/a.h"\n#include "baton/codes_table.h"\n#include <string.h>\n'
                  'const char *help = "create a table; SELECT is a word; call system(x)";\n',
    "worker/b.c": HEAD + '#include "common/base/a.h"\nint b(struct x *x) { return x->system(1); }\n',
}
