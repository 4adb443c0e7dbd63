/*
 * The frame of the command line: verbs, options, help, output and how a command fails.
 *
 * A verb is one `const struct baton_command` in its own file cmd_<verb>.c; the program is a table
 * of them given to command_main. Everything a user reads about a verb (help, usage, the nearest
 * known option) comes from that struct. Main thread only.
 *
 *   static int run(struct command *cmd)
 *   {
 *       struct config *config;
 *       struct baton_error err;
 *       baton_code rc = command_config(cmd, &config, &err);
 *       if (rc != BATON_OK) { return command_fail(cmd, rc, &err); }
 *       const char *service = command_text(cmd, "service");
 *       ...
 *       return command_print(cmd, &buf) ? 0 : ...the frame reports a broken output itself...;
 *   }
 */
#ifndef BATON_BASE_COMMAND_H
#define BATON_BASE_COMMAND_H

#include "baton/code.h"
#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/config.h"
#include "common/base/table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_kind {
    OPTION_flag,     /* --drain */
    OPTION_text,     /* --service S, --service=S */
    OPTION_int,      /* decimal, within min..max */
    OPTION_duration, /* 500ms 2s 20m 6h 7d, a plain number is seconds; milliseconds in the value */
    OPTION_size,     /* 64K, 10M, 1G, a plain number is bytes */
    OPTION_multi,    /* text, any number of times */
};

struct command_option {
    const char *name;     /* without dashes */
    char letter;          /* 0: none */
    const char *argument; /* how help names the value; NULL for flags */
    enum option_kind kind;
    const char *fallback; /* the default as text, shown in help; NULL: none */
    const char *help;     /* one sentence or more, wrapped by the frame */
    int64_t min;          /* int, duration, size; with min == max == 0: 0 and more */
    int64_t max;
    bool required;
};

struct command;

struct baton_command {
    const char *name;
    const char *summary; /* one line without a dot */
    const char *usage; /* lines without the program's name, '\n' between: "--service S [--id W]" */
    const char *description; /* paragraphs, "\n\n" between; wrapped */
    const struct command_option *options;
    size_t n_options;
    const struct baton_command *const *subcommands;
    size_t n_subcommands;
    const char *examples;    /* lines as they are: "# comment" and command lines */
    const char *exits;       /* further lines under EXIT STATUS; NULL: the common ones suffice */
    const char *files;       /* FILES; NULL: none */
    const char *environment; /* ENVIRONMENT; NULL: none */
    size_t args_min;         /* words beside options, for example an id */
    size_t args_max;
    /* Returns the exit status. NULL for a verb that only has subcommands. */
    int (*run)(struct command *cmd);
};

/* What run gets. Read it; the frame owns all of it. */
struct command {
    const struct baton_command *self;
    char name[64]; /* "turns show", as the user typed it */
    bool json;
    bool quiet;
    bool verbose;
    bool unattended;         /* nobody is there to be asked: BATON_MODE, else CI */
    const char *config_path; /* of --config, or NULL */
    const char *const *sets; /* of --set */
    size_t n_sets;
    const char *const *args;
    size_t n_args;
    struct command_state *state; /* the frame's */
};

/* Values of this verb's own options; name must be in its table (contract). */
bool command_given(const struct command *cmd, const char *name);
bool command_flag(const struct command *cmd, const char *name);
/* The text given, else the fallback, else NULL. */
const char *command_text(const struct command *cmd, const char *name);
/* int, duration (ms), size (bytes): given, else the fallback, else 0. */
int64_t command_int(const struct command *cmd, const char *name);
const char *const *command_list(const struct command *cmd, const char *name, size_t *ret_count);

/*
 * Says why the command failed and returns the exit status of code. Text: `baton: <text>` and the
 * code with its meaning on standard error. --json: {"status":"failed","code":...,"error":...} on
 * standard output. err may be NULL.
 */
int command_fail(struct command *cmd, baton_code code, const struct baton_error *err);
/* A mistake in the arguments that the table cannot find: usage, exit 2. */
int command_usage(struct command *cmd, const char *format, ...) BATON_PRINTF(2, 3);

/* config_find and config_load with --config and --set. On bad_config all findings are kept and
 * command_fail prints them. Caller frees *ret_config. */
baton_code command_config(struct command *cmd, struct config **ret_config, struct baton_error *err);

/* Where the findings of another file that was read go: command_fail prints them as it does those of the
 * configuration, instead of its error. The frame's. */
struct buf *command_findings(struct command *cmd);

/*
 * Writes the buffer to standard output and empties it; a broken one ends as no_memory. False: nobody
 * reads any more, or the disk is full; stop producing and return: the frame says so where it matters
 * and sets the exit status.
 */
bool command_print(struct command *cmd, struct buf *buf);
/* For people, neither with --quiet nor with --json: one line on standard error. */
void command_note(struct command *cmd, const char *format, ...) BATON_PRINTF(2, 3);
/* Prints the table, fitted to the terminal if standard output is one. */
bool command_table(struct command *cmd, const struct table *table);
/* Columns of the terminal on standard output, or 0 if it is none. */
size_t command_width(void);
/* A time for a table: UTC to the second; on a terminal to the minute and without the year. */
struct time_text command_time(struct wall_ms at);

/* The program: finds the verb, parses, runs, returns the exit status. Only main calls it. */
int command_main(const struct baton_command *const *commands, size_t n_commands, int argc,
                 char **argv);

#endif
