/* The frame of the command line, as a user meets it: each run is a process of its own. */
#include "base_test.h"

#include "common/base/check.h"
#include "common/base/command.h"
#include "common/base/config.h"

#include <cjson/cJSON.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- a small program ---- */

static int run_worker(struct command *cmd)
{
    struct buf out = BUF_INIT;
    size_t n_tags;
    const char *const *tags = command_list(cmd, "tag", &n_tags);
    buf_printf(
        &out,
        "%s service=%s timeout=%lld rev=%lld size=%lld drain=%d json=%d quiet=%d unattended=%d",
        cmd->name, command_text(cmd, "service"), (long long)command_int(cmd, "timeout"),
        (long long)command_int(cmd, "rev"), (long long)command_int(cmd, "size"),
        command_flag(cmd, "drain"), cmd->json, cmd->quiet, cmd->unattended);
    for (size_t i = 0; i < n_tags; i++) {
        buf_printf(&out, " tag=%s", tags[i]);
    }
    for (size_t i = 0; i < cmd->n_args; i++) {
        buf_printf(&out, " arg=%s", cmd->args[i]);
    }
    buf_add_char(&out, '\n');
    command_print(cmd, &out);
    command_note(cmd, "a note with \x1b");
    buf_done(&out);
    return 0;
}

static int run_fail(struct command *cmd)
{
    struct baton_error err;
    if (command_flag(cmd, "usage")) {
        return command_usage(cmd, "--usage and '%s' do not go together", "x\x1b");
    }
    baton_fail(&err, BATON_E_turn_not_found, "no turn '%s' at service a", "\x1b[2J\n");
    return command_fail(cmd, BATON_E_turn_not_found, command_flag(cmd, "bare") ? NULL : &err);
}

static int run_config(struct command *cmd)
{
    struct config *config;
    struct baton_error err;
    baton_code rc = command_config(cmd, &config, &err);
    if (rc != BATON_OK) {
        return command_fail(cmd, rc, &err);
    }
    struct buf out = BUF_INIT;
    buf_printf(&out, "prefix %s failures %d\n", config->prefix.s, config->budget.failures);
    command_print(cmd, &out);
    buf_done(&out);
    config_free(config);
    return 0;
}

static int run_much(struct command *cmd)
{
    struct buf out = BUF_INIT;
    int lines = 0;
    bool going = true;
    while (going && lines < 100000) {
        buf_add_text(&out, "a line of some length, again and again\n");
        going = command_print(cmd, &out);
        lines++;
    }
    buf_done(&out);
    return lines == 100000 ? 9 : 0; /* 9: it never noticed that nobody reads */
}

static const struct command_option worker_options[] = {
    {.name = "service",
     .letter = 's',
     .argument = "S",
     .kind = OPTION_text,
     .help = "The service.",
     .required = true},
    {.name = "timeout",
     .argument = "SECONDS",
     .kind = OPTION_duration,
     .fallback = "30s",
     .help = "How long.",
     .max = 3600000},
    {.name = "rev", .argument = "N", .kind = OPTION_int, .help = "Revision.", .min = 1, .max = 10},
    {.name = "size", .argument = "BYTES", .kind = OPTION_size, .fallback = "64K", .help = "Size."},
    {.name = "drain",
     .kind = OPTION_flag,
     .help =
         "Until nothing is left, which is a long sentence so that it must be wrapped somewhere."},
    {.name = "tag", .argument = "T", .kind = OPTION_multi, .help = "A tag."},
};
static const struct command_option fail_options[] = {
    {.name = "usage", .kind = OPTION_flag, .help = "x"},
    {.name = "bare", .kind = OPTION_flag, .help = "x"},
};
static const struct baton_command worker = {
    .name = "worker",
    .summary = "does the turns of a service",
    .usage = "--service S [--drain]\n--service S --tag T...\n"
             "[--first-of-three ARGUMENT] --second-of-three ARGUMENT [--third-of-three ARGUMENT]",
    .description = "Takes handoffs.\n\nSecond paragraph.",
    .options = worker_options,
    .n_options = COUNT_OF(worker_options),
    .examples = "# Work until nothing is left\nbaton worker --service a --drain",
    .exits = "9  a special one",
    .files = "data/\n    Stores.",
    .environment = "SOME\n    Thing.",
    .args_max = 2,
    .run = run_worker};
static const struct baton_command failing = {.name = "failing",
                                             .summary = "fails",
                                             .options = fail_options,
                                             .n_options = COUNT_OF(fail_options),
                                             .run = run_fail};
static const struct baton_command show = {.name = "show",
                                          .summary = "shows",
                                          .usage = "ID",
                                          .args_min = 1,
                                          .args_max = 1,
                                          .run = run_worker,
                                          .options = worker_options,
                                          .n_options = COUNT_OF(worker_options),
                                          .examples = "baton turns show 3f"};
static const struct baton_command *const turns_commands[] = {&show};
static const struct baton_command turns = {.name = "turns",
                                           .summary = "looks at turns",
                                           .subcommands = turns_commands,
                                           .n_subcommands = 1};
static const struct baton_command config_verb = {
    .name = "config", .summary = "reads it", .run = run_config};
static const struct baton_command much = {
    .name = "much", .summary = "prints much", .run = run_much};
static const struct baton_command *const commands[] = {&worker, &failing, &turns, &config_verb,
                                                       &much};

/* ---- running it ---- */

struct ran {
    int status;
    char out[65536];
    char err[65536];
};

static void slurp(int fd, char *to, size_t size)
{
    size_t len = 0;
    lseek(fd, 0, SEEK_SET);
    for (ssize_t n; len + 1 < size && (n = read(fd, to + len, size - 1 - len)) > 0;) {
        len += (size_t)n;
    }
    to[len] = '\0';
    close(fd);
}

/* Runs the words of line, with out_fd as its output; returns the exit status. */
static int run_child(const char *line, int out_fd, int err_fd)
{
    char words[512];
    char program[] = "baton";
    char *argv[32] = {program};
    int argc = 1;
    snprintf(words, sizeof(words), "%s", line);
    for (char *at = words; *at != '\0';) {
        argv[argc++] = at;
        at += strcspn(at, " ");
        if (*at == ' ') {
            *at++ = '\0';
        }
    }
    argv[argc] = NULL;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(out_fd, STDOUT_FILENO);
        dup2(err_fd, STDERR_FILENO);
        _exit(command_main(commands, COUNT_OF(commands), argc, argv));
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static const struct ran *ran(const char *line)
{
    static struct ran result;
    int out = memfd_create("out", MFD_CLOEXEC);
    int err = memfd_create("err", MFD_CLOEXEC);
    result.status = run_child(line, out, err);
    slurp(out, result.out, sizeof(result.out));
    slurp(err, result.err, sizeof(result.err));
    return &result;
}

static void fails(const char *line, int status, const char *err)
{
    const struct ran *r = ran(line);
    if (r->status != status || strstr(r->err, err) == NULL || r->out[0] != '\0') {
        fail_msg("%s: %d\nout: %s\nerr: %s", line, r->status, r->out, r->err);
    }
}

static void prints(const char *line, const char *out)
{
    const struct ran *r = ran(line);
    if (r->status != 0 || strcmp(r->out, out) != 0) {
        fail_msg("%s: %d\nout: %s\nerr: %s", line, r->status, r->out, r->err);
    }
}

/* ---- the tests ---- */

static void options_are_read(void **state)
{
    (void)state;
    prints("worker --service a",
           "worker service=a timeout=30000 rev=0 size=65536 drain=0 json=0 quiet=0 unattended=0\n");
    prints("worker -s a --timeout=5 --rev 7 --size=1M --drain --tag x --tag=y -q",
           "worker service=a timeout=5000 rev=7 size=1048576 drain=1 json=0 quiet=1 unattended=0 "
           "tag=x tag=y\n");
    prints("worker one --service a --timeout 500ms two",
           "worker service=a timeout=500 rev=0 size=65536 drain=0 json=0 quiet=0 unattended=0 "
           "arg=one arg=two\n");
    prints("--json worker --service=--odd -- --drain -",
           "worker service=--odd timeout=30000 rev=0 size=65536 drain=0 json=1 quiet=0 "
           "unattended=0 arg=--drain arg=-\n");
    prints("turns show 3f --service a --json",
           "turns show service=a timeout=30000 rev=0 size=65536 drain=0 json=1 quiet=0 "
           "unattended=0 arg=3f\n");
    prints("turns --set a=b show worker -s a",
           "turns show service=a timeout=30000 rev=0 size=65536 drain=0 json=0 quiet=0 "
           "unattended=0 arg=worker\n");
}

static void usage_mistakes_end_with_2(void **state)
{
    (void)state;
    fails("nonsense", 2, "baton has no command 'nonsense'");
    fails("wroker", 2, "did you mean 'worker'");
    fails("turns", 2, "which command of `baton turns`?");
    fails("turns shw", 2, "baton turns has no command 'shw', did you mean 'show'");
    fails("turns show --service a", 2, "1 argument is missing");
    fails("turns show a b --service a", 2, "unexpected argument 'b'");
    fails("worker worker --service a x y", 2, "unexpected argument");
    fails("worker", 2, "--service S is missing");
    fails("worker --service a --service b", 2, "--service was given twice");
    fails("worker --service a --service a", 2, "--service was given twice");
    fails("worker --service a --drain --drain", 2, "--drain was given twice");
    fails("worker --service a --config x --config y", 2, "--config was given twice");
    fails("worker --service", 2, "--service needs a value, --service S");
    fails("worker --service --drain", 2, "--service needs a value");
    fails("worker --service a --drain=yes", 2, "--drain takes no value");
    fails("worker --servce a", 2, "unknown option '--servce', did you mean '--service'");
    fails("worker --jsno", 2, "did you mean '--json'");
    fails("worker -x", 2, "unknown option '-x'");
    fails("worker -sa", 2, "unknown option '-sa'");
    fails("worker --service a --rev 0", 2, "--rev must be a whole number from 1 to 10, not '0'");
    fails("worker --service a --rev 1x", 2, "--rev must be");
    fails("worker --service a --timeout 2h", 2, "from 0s to 1h, not '2h'");
    fails("worker --service a --timeout -5", 2, "--timeout must be");
    fails("worker --service a --size 5X", 2, "--size must be a size");
    fails("worker --service a --\x1b[2J", 2, "\\x1b[2J");
    fails("worker --", 2, "usage: baton worker --service S [--drain]\n");
    fails("", 2, "COMMANDS");
    fails("--config x", 2, "which command?");
    fails("failing --usage", 2, "--usage and 'x\\x1b' do not go together\n  usage: baton failing");
}

static void usage_mistakes_are_json_when_asked(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        const char *code;
    } lines[] = {{"nonsense --json", "usage"},
                 {"worker --json --servce a", "unsupported_option"},
                 {"worker --json", "usage"},
                 {"failing --json --usage", "usage"}};
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        const struct ran *r = ran(lines[i].line);
        assert_int_equal(r->status, 2);
        cJSON *json = cJSON_Parse(r->out);
        assert_non_null(json);
        assert_string_equal(cJSON_GetObjectItemCaseSensitive(json, "status")->valuestring,
                            "failed");
        assert_string_equal(cJSON_GetObjectItemCaseSensitive(json, "code")->valuestring,
                            lines[i].code);
        cJSON_Delete(json);
        assert_string_equal(r->err, "");
    }
}

static void failure_has_text_code_and_status(void **state)
{
    (void)state;
    const struct ran *r = ran("failing");
    assert_int_equal(r->status, 5);
    assert_string_equal(r->out, "");
    assert_string_equal(
        r->err, "baton: no turn '\\x1b[2J\\x0a' at service a\n  turn_not_found: no such turn\n");
    r = ran("failing --bare");
    assert_string_equal(r->err, "baton: no such turn\n  turn_not_found: no such turn\n");
    r = ran("failing --json");
    assert_int_equal(r->status, 5);
    assert_string_equal(r->err, "");
    assert_string_equal(r->out, "{\"status\":\"failed\",\"code\":\"turn_not_found\",\"error\":"
                                "\"no turn '\\u001b[2J\\n' at service a\"}\n");
}

static void notes_are_for_people(void **state)
{
    (void)state;
    assert_string_equal(ran("worker -s a")->err, "a note with \\x1b\n");
    assert_string_equal(ran("worker -s a --quiet")->err, "");
    assert_string_equal(ran("worker -s a --json")->err, "");
}

static void help_is_a_page(void **state)
{
    (void)state;
    static const char *const parts[] = {
        "NAME\n    baton worker - does the turns of a service\n",
        "\nSYNOPSIS\n    baton worker --service S [--drain]\n",
        "[--drain]\n    baton worker --service S --tag T...\n",
        ("\n    baton worker [--first-of-three ARGUMENT] --second-of-three ARGUMENT\n"
         "                 [--third-of-three ARGUMENT]\n"),
        "\nDESCRIPTION\n    Takes handoffs.\n\n    Second paragraph.\n",
        "\nOPTIONS\n    -s, --service S\n        The service. Required.\n",
        "    --timeout SECONDS\n        How long. Default: 30s.\n",
        "    --tag T\n        A tag. May be given many times.\n",
        "\nCOMMON OPTIONS\n    -c, --config FILE\n",
        "    --set KEY=VALUE\n",
        "    --json\n",
        "    -q, --quiet\n",
        "\nEXAMPLES\n    # Work until nothing is left\n    baton worker --service a --drain\n",
        "\nEXIT STATUS\n    0  done\n",
        "    9  a special one\n",
        "\nFILES\n",
        "    data/\n        Stores.\n",
        "\nENVIRONMENT\n",
        "    SOME\n        Thing.\n",
    };
    static const char *const lines[] = {"worker --help", "help worker", "worker -h",
                                        "worker --servce --help", "--help worker"};
    for (size_t l = 0; l < COUNT_OF(lines); l++) {
        const struct ran *r = ran(lines[l]);
        assert_int_equal(r->status, 0);
        assert_string_equal(r->err, "");
        for (size_t i = 0; i < COUNT_OF(parts); i++) {
            if (strstr(r->out, parts[i]) == NULL) {
                fail_msg("%s: no '%s' in\n%s", lines[l], parts[i], r->out);
            }
        }
        for (const char *at = r->out; *at != '\0'; at += strcspn(at, "\n") + 1) {
            assert_true(strcspn(at, "\n") <= 80);
        }
    }
}

static void help_of_program_and_sub_verbs(void **state)
{
    (void)state;
    const struct ran *r = ran("--help");
    assert_int_equal(r->status, 0);
    assert_non_null(
        strstr(r->out, "COMMANDS\n    worker   does the turns of a service\n    failing  fails\n"));
    r = ran("turns --help");
    assert_int_equal(r->status, 0);
    assert_non_null(strstr(r->out, "COMMANDS\n    show  shows\n"));
    r = ran("help turns show");
    assert_int_equal(r->status, 0);
    assert_non_null(strstr(r->out, "NAME\n    baton turns show - shows\n"));
    assert_non_null(strstr(r->out, "EXAMPLES\n    baton turns show 3f\n"));
    fails("help nonsense", 2, "baton has no command 'nonsense'");
    prints("--version", "baton " BATON_VERSION "\n");
}

static void mode_is_attended_or_unattended(void **state)
{
    (void)state;
    setenv("BATON_MODE", "unattended", 1);
    assert_non_null(strstr(ran("worker -s a")->out, "unattended=1"));
    setenv("CI", "true", 1);
    setenv("BATON_MODE", "attended", 1);
    assert_non_null(strstr(ran("worker -s a")->out, "unattended=0"));
    setenv("BATON_MODE", "sometimes", 1);
    const struct ran *r = ran("worker -s a --json");
    assert_int_equal(r->status, 2);
    assert_non_null(strstr(r->out, "\"code\":\"bad_mode\""));
    unsetenv("BATON_MODE");
    assert_non_null(strstr(ran("worker -s a")->out, "unattended=1"));
    unsetenv("CI");
}

static void configuration_mistakes_are_all_shown(void **state)
{
    (void)state;
    char path[] = "/tmp/baton-command-XXXXXX";
    char line[512];
    int fd = mkstemp(path);
    static const char text[] = "prefx: a\nbudget: {failures: x}\n";
    assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
    close(fd);
    snprintf(line, sizeof(line), "config --config %s", path);
    const struct ran *r = ran(line);
    assert_int_equal(r->status, 2);
    assert_non_null(strstr(r->err, ":1:1: unknown key 'prefx'"));
    assert_non_null(strstr(r->err, ":2:10: budget.failures must be"));
    assert_non_null(strstr(r->err, "\n  bad_config: "));
    snprintf(line, sizeof(line), "config --json --config %s", path);
    r = ran(line);
    assert_int_equal(r->status, 2);
    cJSON *json = cJSON_Parse(r->out);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(json, "findings")), 2);
    cJSON_Delete(json);
    fd = open(path, O_WRONLY | O_TRUNC);
    close(fd);
    snprintf(line, sizeof(line), "config --config %s --set prefix=p --set budget.failures=9", path);
    prints(line, "prefix p failures 9\n");
    unlink(path);
}

static void output_that_cannot_be_written_is_an_error(void **state)
{
    (void)state;
    int err = memfd_create("err", MFD_CLOEXEC);
    int full = open("/dev/full", O_WRONLY);
    char text[4096];
    assert_int_equal(run_child("worker -s a -q", full, err), 8);
    assert_int_equal(run_child("--version", full, err), 8);
    assert_int_equal(run_child("--help", full, err), 8);
    assert_int_equal(run_child("failing --json", full, err), 5);
    close(full);
    int closed = open("/dev/null", O_RDONLY);
    assert_int_equal(run_child("worker -s a -q", closed, err), 1);
    close(closed);
    slurp(err, text, sizeof(text));
    assert_non_null(strstr(text, "baton: cannot write standard output: No space left on device\n"));
}

static void a_reader_that_goes_away_is_no_error(void **state)
{
    (void)state;
    int ends[2];
    char text[4096];
    int err = memfd_create("err", MFD_CLOEXEC);
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    assert_int_equal(run_child("much", ends[1], err), 0);
    close(ends[1]);
    slurp(err, text, sizeof(text));
    assert_string_equal(text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_are_read),
        cmocka_unit_test(usage_mistakes_end_with_2),
        cmocka_unit_test(usage_mistakes_are_json_when_asked),
        cmocka_unit_test(failure_has_text_code_and_status),
        cmocka_unit_test(notes_are_for_people),
        cmocka_unit_test(help_is_a_page),
        cmocka_unit_test(help_of_program_and_sub_verbs),
        cmocka_unit_test(mode_is_attended_or_unattended),
        cmocka_unit_test(configuration_mistakes_are_all_shown),
        cmocka_unit_test(output_that_cannot_be_written_is_an_error),
        cmocka_unit_test(a_reader_that_goes_away_is_no_error),
    };
    unsetenv("BATON_MODE");
    unsetenv("CI");
    unsetenv("BATON_CONFIG");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
