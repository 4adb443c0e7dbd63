/*
 * The program around the verbs: dispatch, output, failure. Called by the program's main; verbs call
 * back what command.h offers them.
 */
#include "common/base/command.h"

#include "common/base/check.h"
#include "common/base/command_state.h"
#include "common/base/diag.h"
#include "common/base/fault.h"
#include "common/base/jsonw.h"
#include "common/base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* ---- output ---- */

static bool write_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, bytes, len);
        if (n < 0 && errno != EINTR) {
            return false;
        }
        bytes += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

static bool write_out(struct command *cmd, const void *bytes, size_t len)
{
    if (cmd->state->out_errno == 0 && !write_all(STDOUT_FILENO, bytes, len)) {
        cmd->state->out_errno = errno;
    }
    return cmd->state->out_errno == 0;
}

bool command_print(struct command *cmd, struct buf *buf)
{
    if (!buf_ok(buf)) {
        cmd->state->out_errno = cmd->state->out_errno != 0 ? cmd->state->out_errno : ENOMEM;
        return false;
    }
    bool written = buf->len == 0 || write_out(cmd, buf->data, buf->len);
    buf_clear(buf);
    return written;
}

size_t command_width(void)
{
    struct winsize size;
    if (isatty(STDOUT_FILENO) != 1) {
        return 0;
    }
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return known ? size.ws_col : 80;
}

struct time_text command_time(struct wall_ms at)
{
    struct time_text text = wall_text(at);
    text.s[10] = ' ';
    text.s[19] = '\0';
    if (command_width() > 0) {
        memmove(text.s, text.s + 5, 11);
        text.s[11] = '\0';
    }
    return text;
}

bool command_table(struct command *cmd, const struct table *table)
{
    struct buf out = BUF_INIT;
    if (!table_print(table, command_width(), &out)) {
        out.broken = true;
    }
    bool written = command_print(cmd, &out);
    buf_done(&out);
    return written;
}

/* Lines for people on standard error; when even that fails there is nobody left to tell. */
static void to_people(const struct buf *text)
{
    if (buf_ok(text) && !write_all(STDERR_FILENO, text->data, text->len)) {
        return;
    }
}

void command_note(struct command *cmd, const char *format, ...)
{
    char *line = NULL; /* however long: it may be a command to be pasted */
    struct buf out = BUF_INIT;
    va_list args;
    if (cmd->quiet || cmd->json) {
        return;
    }
    va_start(args, format);
    int n = vasprintf(&line, format, args);
    va_end(args);
    if (n < 0) {
        return;
    }
    text_add(&out, line, (size_t)n, 0);
    buf_add_char(&out, '\n');
    to_people(&out);
    buf_done(&out);
    free(line);
}

/* ---- failure ---- */

static void fail_json(struct command *cmd, baton_code code, const char *text)
{
    struct buf out = BUF_INIT;
    struct jsonw w = jsonw_to(&out);
    const struct buf *findings = &cmd->state->findings;
    jsonw_begin_object(&w);
    jsonw_key_text(&w, "status", "failed");
    jsonw_key_text(&w, "code", baton_code_word(code));
    jsonw_key_text(&w, "error", text);
    if (findings->len > 0) {
        jsonw_key(&w, "findings");
        jsonw_begin_array(&w);
        for (const char *at = findings->data; *at != '\0';) {
            size_t n = strcspn(at, "\n");
            jsonw_bytes(&w, at, n);
            at += n + (at[n] == '\n' ? 1 : 0);
        }
        jsonw_end(&w);
    }
    jsonw_end(&w);
    buf_add_char(&out, '\n');
    command_print(cmd, &out);
    buf_done(&out);
}

static void fail_text(struct command *cmd, baton_code code, const char *text)
{
    struct buf out = BUF_INIT;
    const struct buf *findings = &cmd->state->findings;
    buf_add_text(&out, "baton: ");
    if (findings->len > 0) {
        text_add_lines(&out, findings->data, findings->len, 0, "");
        buf_printf(&out, "  %s: %s\n", baton_code_word(code), baton_code_text(code));
    } else {
        text_add(&out, text, strlen(text), 0);
        buf_printf(&out, "\n  %s: %s\n", baton_code_word(code), baton_code_text(code));
    }
    to_people(&out);
    buf_done(&out);
}

int command_fail(struct command *cmd, baton_code code, const struct baton_error *err)
{
    const char *text = err != NULL && err->text[0] != '\0' ? err->text : baton_code_text(code);
    if (cmd->json) {
        fail_json(cmd, code, text);
    } else {
        fail_text(cmd, code, text);
    }
    return baton_code_exit(code);
}

static int usage_failed(struct command *cmd, const struct baton_error *err)
{
    struct buf out = BUF_INIT;
    if (cmd->json) {
        return command_fail(cmd, err->code, err);
    }
    buf_add_text(&out, strncmp(err->text, "baton ", 6) == 0 ? "" : "baton: ");
    text_add(&out, err->text, strlen(err->text), 0);
    buf_add_char(&out, '\n');
    if (cmd->self != NULL) {
        command_synopsis(&cmd->state->path, "  usage: ", COMMAND_WIDTH, &out);
    }
    to_people(&out);
    buf_done(&out);
    return baton_code_exit(err->code);
}

int command_usage(struct command *cmd, const char *format, ...)
{
    char text[512];
    struct baton_error err;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    baton_fail(&err, BATON_E_usage, "%s", text);
    return usage_failed(cmd, &err);
}

baton_code command_config(struct command *cmd, struct config **ret_config, struct baton_error *err)
{
    char *path = NULL;
    baton_code rc = config_find(cmd->config_path, &path, err);
    if (rc == BATON_OK) {
        buf_clear(&cmd->state->findings);
        rc = config_load(path, cmd->sets, cmd->n_sets, ret_config, &cmd->state->findings, err);
        if (rc == BATON_E_bad_config && !buf_ok(&cmd->state->findings)) {
            buf_clear(&cmd->state->findings); /* err still has the first */
        }
    }
    free(path);
    return rc;
}

struct buf *command_findings(struct command *cmd)
{
    return &cmd->state->findings;
}

/* ---- the program ---- */

/* A closed descriptor 0..2 would be given to the next file that is opened, and log lines would go
 * into the store. Read-only, so that writing to it fails as it should. */
static void fill_descriptors(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF) {
            BATON_INVARIANT(open("/dev/null", O_RDONLY) == fd);
        }
    }
}

static int show_help(struct command *cmd, int argc, const char *const *argv)
{
    struct command_state *state = cmd->state;
    struct buf page = BUF_INIT;
    struct command_path path;
    struct baton_error err;
    if (!command_path_of(state, argc, argv, &path, &err)) {
        return usage_failed(cmd, &err);
    }
    size_t width = command_width();
    command_help(state, &path, width == 0 || width > 100 ? COMMAND_WIDTH : width, &page);
    command_print(cmd, &page);
    buf_done(&page);
    return 0;
}

/* `baton` alone: the page is help for a person, and no success for a script. */
static int no_verb(struct command *cmd)
{
    struct buf page = BUF_INIT;
    struct command_path path = {0};
    command_help(cmd->state, &path, 80, &page);
    to_people(&page);
    buf_done(&page);
    return baton_code_exit(BATON_E_usage);
}

/* BATON_MODE, else CI, else somebody is there. */
static bool mode_known(struct command *cmd, struct baton_error *err)
{
    const char *mode = getenv("BATON_MODE");
    const char *ci = getenv("CI");
    cmd->unattended = ci != NULL && ci[0] != '\0' && strcmp(ci, "false") != 0;
    if (mode == NULL || mode[0] == '\0') {
        return true;
    }
    cmd->unattended = strcmp(mode, "unattended") == 0;
    if (!cmd->unattended && strcmp(mode, "attended") != 0) {
        baton_fail(err, BATON_E_bad_mode,
                   "BATON_MODE is '%s'; set it to attended or unattended, or unset it",
                   text_quote_of(mode).s);
        return false;
    }
    return true;
}

static int run(struct command *cmd, int argc, const char *const *argv)
{
    struct baton_error err = {BATON_OK, ""};
    struct command_wish wish = command_wish_of(cmd->state, argc, argv);
    if (argc > 0 && strcmp(argv[0], "help") == 0) {
        return show_help(cmd, argc - 1, argv + 1);
    }
    if (argc == 0) {
        return no_verb(cmd);
    }
    if (wish.help) {
        return show_help(cmd, argc, argv);
    }
    if (wish.version) {
        static const char version[] = "baton " BATON_VERSION "\n";
        write_out(cmd, version, sizeof(version) - 1);
        return 0;
    }
    cmd->json = wish.json;
    if (!command_parse(cmd, argc, argv, &err)) {
        return usage_failed(cmd, &err);
    }
    if (!mode_known(cmd, &err)) {
        return command_fail(cmd, err.code, &err);
    }
    struct buf name = BUF_INIT;
    command_name(&cmd->state->path, &name);
    snprintf(cmd->name, sizeof(cmd->name), "%s", buf_ok(&name) ? name.data + strlen("baton ") : "");
    buf_done(&name);
    diag_open_stderr(cmd->quiet     ? DIAG_error
                     : cmd->verbose ? DIAG_debug
                                    : DIAG_info,
                     DIAG_FORM_auto);
    return cmd->self->run(cmd);
}

/* What standard output took, or why not. A reader that went away (EPIPE) is no error of ours. */
static int output_judged(struct command *cmd, int status)
{
    if (fflush(stdout) != 0 && cmd->state->out_errno == 0) {
        cmd->state->out_errno = errno;
    }
    int why = cmd->state->out_errno;
    if (why == 0 || why == EPIPE) {
        return status;
    }
    baton_code code = why == ENOSPC || why == EDQUOT ? BATON_E_disk_full
                      : why == ENOMEM                ? BATON_E_no_memory
                                                     : BATON_E_unexpected;
    struct buf out = BUF_INIT;
    buf_printf(&out, "baton: cannot write standard output: %s\n", strerror(why));
    to_people(&out);
    buf_done(&out);
    return status != 0 ? status : baton_code_exit(code);
}

int command_main(const struct baton_command *const *commands, size_t n_commands, int argc,
                 char **argv)
{
    struct command_state state = {.commands = commands, .n_commands = n_commands};
    struct command cmd = {.state = &state};
    fill_descriptors();
    signal(SIGPIPE, SIG_IGN);
    fault_begin();
    int status = run(&cmd, argc > 0 ? argc - 1 : 0, (const char *const *)argv + 1);
    status = output_judged(&cmd, status);
    command_parse_done(&cmd);
    buf_done(&state.findings);
    return status;
}
