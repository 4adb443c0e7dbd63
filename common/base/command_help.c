/* Help pages, made from the tables of the verbs. Called by command.c only. */
#include "common/base/command_state.h"
#include "common/base/text.h"

#include <string.h>

#define INDENT 4

static const char common_exits[] = "0  done\n"
                                   "1  an unexpected error\n"
                                   "2  unusable arguments, request or configuration\n"
                                   "3  blocked: valid, but not allowed to go on (routing, hooks)\n"
                                   "4  refused by policy: no right, no key, a person is needed\n"
                                   "5  not found\n"
                                   "6  in conflict with the present state, or busy\n"
                                   "7  the record or the turn is invalid or ended badly\n"
                                   "8  not to be had now (log, store, time): try again";
static const char common_files[] =
    "./baton.yaml, /etc/baton/baton.yaml\n"
    "    The configuration, unless --config or $BATON_CONFIG names it.";
static const char common_environment[] =
    "BATON_CONFIG\n    The configuration's path.\n"
    "BATON_MODE\n    attended or unattended: whether a person is there to be asked.";

static void spaces(struct buf *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        buf_add_char(out, ' ');
    }
}

/* Lines as they are, indented. */
static void add_lines(struct buf *out, const char *text, size_t indent)
{
    while (*text != '\0') {
        size_t n = strcspn(text, "\n");
        spaces(out, n > 0 ? indent : 0);
        buf_add(out, text, n);
        buf_add_char(out, '\n');
        text += n + (text[n] == '\n' ? 1 : 0);
    }
}

static void heading(struct buf *out, const char *title)
{
    buf_printf(out, "%s%s\n", out->len > 0 ? "\n" : "", title);
}

void command_name(const struct command_path *path, struct buf *out)
{
    buf_add_text(out, "baton");
    for (size_t i = 0; i < path->count; i++) {
        buf_printf(out, " %s", path->verbs[i]->name);
    }
}

/* A word of a usage line, an option with its argument, or all that stands in brackets: what is not broken. */
static size_t usage_unit(const char *at, size_t n)
{
    size_t open = 0;
    for (size_t i = 0; i < n; i++) {
        const bool argument = at[0] == '-' && i + 1 < n && at[i + 1] >= 'A' && at[i + 1] <= 'Z';
        if (at[i] == ' ' && open == 0 && !argument) {
            return i;
        }
        open += at[i] == '[' ? 1 : 0;
        open -= at[i] == ']' && open > 0 ? 1 : 0;
    }
    return n;
}

/* One line of it, n bytes, broken before the unit that does not fit any more; `used` columns are. */
static void add_usage(struct buf *out, const char *usage, size_t n, size_t used, size_t width)
{
    const size_t hang = used;
    while (n > 0) {
        const size_t unit = usage_unit(usage, n);
        if (used > hang && used + 1 + unit > width) {
            buf_add_char(out, '\n');
            spaces(out, hang);
            used = hang;
        }
        buf_add_char(out, ' ');
        buf_add(out, usage, unit);
        used += 1 + unit;
        usage += unit;
        n -= unit;
        for (; n > 0 && *usage == ' '; n--) {
            usage++;
        }
    }
}

void command_synopsis(const struct command_path *path, const char *indent, size_t width,
                      struct buf *out)
{
    const struct baton_command *self = path->count > 0 ? path->verbs[path->count - 1] : NULL;
    const char *usage = self == NULL          ? "COMMAND [OPTION]..."
                        : self->usage != NULL ? self->usage
                        : self->run == NULL   ? "COMMAND [OPTION]..."
                                              : "[OPTION]...";
    do {
        size_t n = strcspn(usage, "\n");
        const size_t before = out->len;
        buf_add_text(out, indent);
        command_name(path, out);
        add_usage(out, usage, n, out->len - before, width);
        buf_add_char(out, '\n');
        usage += n + (usage[n] == '\n' ? 1 : 0);
    } while (*usage != '\0');
}

static void add_options(struct buf *out, const struct command_option *options, size_t n,
                        size_t width)
{
    for (size_t i = 0; i < n; i++) {
        const struct command_option *option = &options[i];
        struct buf help = BUF_INIT;
        spaces(out, INDENT);
        if (option->letter != '\0') {
            buf_printf(out, "-%c, ", option->letter);
        }
        buf_printf(out, "--%s%s%s\n", option->name, option->argument != NULL ? " " : "",
                   option->argument != NULL ? option->argument : "");
        buf_add_text(&help, option->help);
        if (option->required) {
            buf_add_text(&help, " Required.");
        }
        if (option->kind == OPTION_multi && options != command_common) {
            buf_add_text(&help, " May be given many times.");
        }
        if (option->fallback != NULL) {
            buf_printf(&help, " Default: %s.", option->fallback);
        }
        if (buf_ok(&help)) {
            text_wrap(out, help.data, 2 * INDENT, 2 * INDENT, width);
        } else {
            out->broken = true;
        }
        buf_done(&help);
    }
}

static void add_commands(struct buf *out, const struct baton_command *const *commands, size_t n)
{
    size_t widest = 0;
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(commands[i]->name);
        widest = len > widest ? len : widest;
    }
    heading(out, "COMMANDS");
    for (size_t i = 0; i < n; i++) {
        spaces(out, INDENT);
        buf_add_text(out, commands[i]->name);
        spaces(out, widest - strlen(commands[i]->name) + 2);
        buf_printf(out, "%s\n", commands[i]->summary);
    }
}

static void add_text(struct buf *out, const char *title, const char *first, const char *more)
{
    if (first != NULL || more != NULL) {
        heading(out, title);
    }
    if (first != NULL) {
        add_lines(out, first, INDENT);
    }
    if (more != NULL) {
        add_lines(out, more, INDENT);
    }
}

void command_help(const struct command_state *state, const struct command_path *path, size_t width,
                  struct buf *out)
{
    const struct baton_command *self = path->count > 0 ? path->verbs[path->count - 1] : NULL;
    heading(out, "NAME");
    spaces(out, INDENT);
    command_name(path, out);
    buf_printf(out, " - %s\n",
               self != NULL ? self->summary : "hands the turns of AI agents on, with their role");
    heading(out, "SYNOPSIS");
    command_synopsis(path, "    ", width, out);
    if (self == NULL) {
        add_commands(out, state->commands, state->n_commands);
        add_text(out, "HELP", "baton COMMAND --help, baton help COMMAND: the page of a command",
                 NULL);
    } else {
        if (self->description != NULL) {
            heading(out, "DESCRIPTION");
            text_wrap(out, self->description, INDENT, INDENT, width);
        }
        if (self->n_subcommands > 0) {
            add_commands(out, self->subcommands, self->n_subcommands);
        }
        if (self->n_options > 0) {
            heading(out, "OPTIONS");
            add_options(out, self->options, self->n_options, width);
        }
    }
    heading(out, "COMMON OPTIONS");
    add_options(out, command_common, COMMAND_COMMON_COUNT, width);
    if (self == NULL) {
        add_lines(out, "--version\n    The program's version.", INDENT);
    } else {
        add_text(out, "EXAMPLES", self->examples, NULL);
    }
    add_text(out, "EXIT STATUS", common_exits, self != NULL ? self->exits : NULL);
    add_text(out, "FILES", common_files, self != NULL ? self->files : NULL);
    add_text(out, "ENVIRONMENT", common_environment, self != NULL ? self->environment : NULL);
}
