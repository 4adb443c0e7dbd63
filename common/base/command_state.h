/* Inside of the command frame: what command.c, command_parse.c and command_help.c share. */
#ifndef BATON_BASE_COMMAND_STATE_H
#define BATON_BASE_COMMAND_STATE_H

#include "common/base/command.h"

#define COMMAND_DEPTH 3 /* verb, sub-verb, and one more */
#define COMMAND_COMMON_COUNT 6

extern const struct command_option command_common[COMMAND_COMMON_COUNT];

struct option_value {
    bool given;
    const char *text; /* given, else the fallback, else NULL */
    int64_t number;
    const char **list; /* multi */
    size_t n_list;
};

/* Which verb a command line means. */
struct command_path {
    const struct baton_command *verbs[COMMAND_DEPTH];
    size_t count;
};

struct command_state {
    const struct baton_command *const *commands;
    size_t n_commands;
    struct command_path path;
    struct option_value common[COMMAND_COMMON_COUNT];
    struct option_value *own; /* as self->options */
    const char **args;
    struct buf findings; /* of the configuration, for command_fail */
    int out_errno;       /* of the first write to standard output that failed */
};

/*
 * Reads argv (without the program's name) into cmd. False: a mistake, told in err with code usage
 * or unsupported_option, or no_memory. help and version are found before anything else is judged, but
 * not in the value of an option: `--reason -h` is a reason.
 */
struct command_wish {
    bool help;
    bool version;
    bool json;
};
struct command_wish command_wish_of(struct command_state *state, int argc, const char *const *argv);
bool command_parse(struct command *cmd, int argc, const char *const *argv, struct baton_error *err);
void command_parse_done(struct command *cmd);
/* The verb that argv names, as far as it is known; at a word that is no verb: false, err. */
bool command_path_of(struct command_state *state, int argc, const char *const *argv,
                     struct command_path *ret_path, struct baton_error *err);

/* The page of a verb, or of the program when path is empty; wrapped to width columns. */
void command_help(const struct command_state *state, const struct command_path *path, size_t width,
                  struct buf *out);
/* "baton turns show", "baton". */
void command_name(const struct command_path *path, struct buf *out);
#define COMMAND_WIDTH 80 /* columns of a page or a usage where the terminal's are not known */
/* The usage lines of a verb, each with the program's name and indent in front, broken at width. */
void command_synopsis(const struct command_path *path, const char *indent, size_t width,
                      struct buf *out);

#endif
