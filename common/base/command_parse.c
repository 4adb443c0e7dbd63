/* Command lines: which verb, which options, which words. Called by command.c only. */
#include "common/base/check.h"
#include "common/base/command_state.h"
#include "common/base/quantity.h"
#include "common/base/text.h"
#include "common/base/word.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMMON_config, COMMON_set, COMMON_json, COMMON_quiet, COMMON_verbose, COMMON_help };

const struct command_option command_common[COMMAND_COMMON_COUNT] = {
    [COMMON_config] = {.name = "config",
                       .letter = 'c',
                       .argument = "FILE",
                       .kind = OPTION_text,
                       .help = "The configuration. Else $BATON_CONFIG, ./baton.yaml, "
                               "/etc/baton/baton.yaml, the first that is there."},
    [COMMON_set] = {.name = "set",
                    .argument = "KEY=VALUE",
                    .kind = OPTION_multi,
                    .help = "Sets a key of the configuration for this run, as retry.first=1s. May "
                            "be given many times."},
    [COMMON_json] = {.name = "json",
                     .kind = OPTION_flag,
                     .help = "Prints JSON for programs, one object a line where there are many."},
    [COMMON_quiet] = {.name = "quiet",
                      .letter = 'q',
                      .kind = OPTION_flag,
                      .help = "Says nothing but results and errors."},
    [COMMON_verbose] = {.name = "verbose",
                        .letter = 'v',
                        .kind = OPTION_flag,
                        .help = "Writes log lines of level debug, too."},
    [COMMON_help] = {.name = "help",
                     .letter = 'h',
                     .kind = OPTION_flag,
                     .help = "Shows this page."},
};

/* ---- looking at the words before any is judged ---- */

static bool is_option(const char *word)
{
    return word[0] == '-' && word[1] != '\0';
}

static const struct command_option *option_of(const struct command_option *options, size_t n,
                                              const char *word)
{
    size_t len = strcspn(word, "=");
    for (size_t i = 0; i < n; i++) {
        bool long_form = word[1] == '-' && strlen(options[i].name) == len - 2 &&
                         memcmp(options[i].name, word + 2, len - 2) == 0;
        bool short_form = word[1] != '-' && options[i].letter != '\0' &&
                          word[1] == options[i].letter && (word[2] == '\0' || word[2] == '=');
        if (long_form || short_form) {
            return &options[i];
        }
    }
    return NULL;
}

static bool verb_unknown(const struct baton_command *const *commands, size_t n,
                         const struct command_path *path, const char *word, struct baton_error *err)
{
    const char *words[64];
    struct buf name = BUF_INIT;
    size_t n_words = 0;
    for (; n_words < n && n_words < COUNT_OF(words); n_words++) {
        words[n_words] = commands[n_words]->name;
    }
    command_name(path, &name);
    const char *near = word_nearest(words, n_words, word);
    const char *program = buf_ok(&name) ? name.data : "baton";
    baton_fail(err, BATON_E_usage, "%s has no command '%s'%s%s%s; see `%s --help`", program,
               text_quote_of(word).s, near != NULL ? ", did you mean '" : "",
               near != NULL ? near : "", near != NULL ? "'" : "", program);
    buf_done(&name);
    return false;
}

/* Steps over a common option that stands before the verb; its value is read later. */
static int step(int argc, const char *const *argv, int i)
{
    const struct command_option *option = option_of(command_common, COMMAND_COMMON_COUNT, argv[i]);
    bool valued = option != NULL && option->kind != OPTION_flag && strchr(argv[i], '=') == NULL;
    return valued && i + 1 < argc ? i + 2 : i + 1;
}

/* Finds the words of argv that are verbs; at_verb marks them. */
static bool find_verbs(struct command_state *state, int argc, const char *const *argv,
                       struct command_path *path, int *at_verb, struct baton_error *err)
{
    const struct baton_command *const *commands = state->commands;
    size_t n = state->n_commands;
    for (int i = 0;
         i < argc && n > 0 && path->count < COMMAND_DEPTH && strcmp(argv[i], "--") != 0;) {
        if (is_option(argv[i])) {
            i = step(argc, argv, i);
            continue;
        }
        const struct baton_command *found = NULL;
        for (size_t c = 0; c < n && found == NULL; c++) {
            found = strcmp(commands[c]->name, argv[i]) == 0 ? commands[c] : NULL;
        }
        if (found == NULL) {
            bool argument = path->count > 0 && path->verbs[path->count - 1]->run != NULL;
            return argument || verb_unknown(commands, n, path, argv[i], err);
        }
        at_verb[path->count] = i;
        path->verbs[path->count++] = found;
        commands = found->subcommands;
        n = found->n_subcommands;
        i++;
    }
    return true;
}

bool command_path_of(struct command_state *state, int argc, const char *const *argv,
                     struct command_path *ret_path, struct baton_error *err)
{
    int at_verb[COMMAND_DEPTH];
    *ret_path = (struct command_path){0};
    return find_verbs(state, argc, argv, ret_path, at_verb, err);
}

/* Is argv[i + 1] the value of the option at argv[i], whatever it looks like? As take_option has it. */
static bool valued(const struct baton_command *self, int argc, const char *const *argv, int i)
{
    if (!is_option(argv[i]) || i + 1 == argc || strchr(argv[i], '=') != NULL) {
        return false;
    }
    const struct command_option *option =
        self != NULL ? option_of(self->options, self->n_options, argv[i]) : NULL;
    option = option != NULL ? option : option_of(command_common, COMMAND_COMMON_COUNT, argv[i]);
    return option != NULL && option->kind != OPTION_flag && strncmp(argv[i + 1], "--", 2) != 0;
}

struct command_wish command_wish_of(struct command_state *state, int argc, const char *const *argv)
{
    struct command_wish wish = {0};
    struct command_path path;
    struct baton_error err; /* a word that is no verb is judged later */
    (void)command_path_of(state, argc, argv, &path, &err);
    const struct baton_command *self = path.count > 0 ? path.verbs[path.count - 1] : NULL;
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        wish.help = wish.help || strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0;
        wish.version = wish.version || (i == 0 && strcmp(argv[i], "--version") == 0);
        wish.json = wish.json || strcmp(argv[i], "--json") == 0;
        i += valued(self, argc, argv, i) ? 1 : 0;
    }
    return wish;
}

/* ---- options ---- */

static bool number_of(const struct command_option *option, const char *text, int64_t *ret_number)
{
    size_t len = strlen(text);
    int64_t number = 0;
    bool right = true;
    switch (option->kind) {
    case OPTION_int:
        right = quantity_int_parse(text, len, &number);
        break;
    case OPTION_duration:
        right = quantity_seconds_parse(text, len, &number) ||
                quantity_duration_parse(text, len, &number);
        break;
    case OPTION_size:
        right = quantity_size_parse(text, len, &number);
        break;
    case OPTION_flag:
    case OPTION_text:
    case OPTION_multi:
        break;
    }
    bool bounded = option->min != 0 || option->max != 0;
    right = right && number >= option->min && (!bounded || number <= option->max);
    if (right) {
        *ret_number = number;
    }
    return right;
}

static void number_expected(const struct command_option *option, struct buf *out)
{
    bool bounded = option->min != 0 || option->max != 0;
    const char *what = option->kind == OPTION_duration
                           ? "seconds or a duration (500ms, 2s, 20m, 6h, 7d)"
                       : option->kind == OPTION_size ? "a size (64K, 10M, 1G)"
                                                     : "a whole number";
    buf_add_text(out, what);
    if (bounded && option->kind == OPTION_duration) {
        buf_printf(out, " from %s to %s", quantity_duration_text(option->min).s,
                   quantity_duration_text(option->max).s);
    } else if (bounded) {
        buf_printf(out, " from %lld to %lld", (long long)option->min, (long long)option->max);
    }
}

static bool option_unknown(const struct baton_command *self, const char *word,
                           struct baton_error *err)
{
    const char *words[64];
    size_t n = 0;
    char name[80];
    for (size_t i = 0; i < COMMAND_COMMON_COUNT; i++) {
        words[n++] = command_common[i].name;
    }
    for (size_t i = 0; i < self->n_options && n < COUNT_OF(words); i++) {
        words[n++] = self->options[i].name;
    }
    snprintf(name, sizeof(name), "%.*s", (int)(strcspn(word, "=") < 64 ? strcspn(word, "=") : 64),
             word);
    const char *bare = name + strspn(name, "-");
    const char *near = bare[0] != '\0' && bare[1] != '\0' ? word_nearest(words, n, bare) : NULL;
    baton_fail(err, BATON_E_unsupported_option, "unknown option '%s'%s%s%s", text_quote_of(name).s,
               near != NULL ? ", did you mean '--" : "", near != NULL ? near : "",
               near != NULL ? "'" : "");
    return false;
}

/* Takes the option at argv[*i]; *i moves on past it and its value. */
static bool take_option(struct command *cmd, int argc, const char *const *argv, int *i,
                        struct baton_error *err)
{
    struct command_state *state = cmd->state;
    const char *word = argv[(*i)++];
    struct option_value *value;
    const struct command_option *option = option_of(cmd->self->options, cmd->self->n_options, word);
    if (option != NULL) {
        value = &state->own[option - cmd->self->options];
    } else {
        option = option_of(command_common, COMMAND_COMMON_COUNT, word);
        value = option != NULL ? &state->common[option - command_common] : NULL;
    }
    if (option == NULL) {
        return option_unknown(cmd->self, word, err);
    }
    char name[64];
    snprintf(name, sizeof(name), "--%s", option->name);
    const char *equals = strchr(word, '=');
    if (value->given && option->kind != OPTION_multi) {
        baton_fail(err, BATON_E_usage, "%s was given twice; it takes one value", name);
        return false;
    }
    value->given = true;
    if (option->kind == OPTION_flag) {
        if (equals != NULL) {
            baton_fail(err, BATON_E_usage, "%s takes no value", name);
        }
        return equals == NULL;
    }
    const char *text = equals != NULL ? equals + 1 : *i < argc ? argv[*i] : NULL;
    if (text == NULL || (equals == NULL && strncmp(text, "--", 2) == 0)) {
        baton_fail(err, BATON_E_usage, "%s needs a value, %s %s", name, name, option->argument);
        return false;
    }
    *i += equals == NULL ? 1 : 0;
    value->text = text;
    if (option->kind == OPTION_multi) {
        value->list[value->n_list++] = text;
    } else if (!number_of(option, text, &value->number)) {
        struct buf expected = BUF_INIT;
        number_expected(option, &expected);
        baton_fail(err, BATON_E_usage, "%s must be %s, not '%s'", name,
                   buf_ok(&expected) ? expected.data : "a number", text_quote_of(text).s);
        buf_done(&expected);
        return false;
    }
    return true;
}

/* Defaults, and room for as many values as there are words. */
static bool prepare(const struct command_option *options, size_t n, struct option_value *values,
                    int argc)
{
    for (size_t i = 0; i < n; i++) {
        const char *fallback = options[i].fallback;
        values[i] = (struct option_value){.text = fallback};
        BATON_PRE(fallback == NULL || number_of(&options[i], fallback, &values[i].number));
        if (options[i].kind == OPTION_multi) {
            values[i].list = calloc((size_t)argc + 1, sizeof(char *));
            if (values[i].list == NULL) {
                return false;
            }
        }
    }
    return true;
}

static bool enough(struct command *cmd, struct baton_error *err)
{
    const struct baton_command *self = cmd->self;
    for (size_t i = 0; i < self->n_options; i++) {
        if (self->options[i].required && !cmd->state->own[i].given) {
            baton_fail(err, BATON_E_usage, "--%s %s is missing", self->options[i].name,
                       self->options[i].argument);
            return false;
        }
    }
    if (cmd->n_args < self->args_min) {
        baton_fail(err, BATON_E_usage, "%zu %s missing", self->args_min - cmd->n_args,
                   self->args_min - cmd->n_args == 1 ? "argument is" : "arguments are");
        return false;
    }
    if (cmd->n_args > self->args_max) {
        baton_fail(err, BATON_E_usage, "unexpected argument '%s'",
                   text_quote_of(cmd->args[self->args_max]).s);
        return false;
    }
    return true;
}

bool command_parse(struct command *cmd, int argc, const char *const *argv, struct baton_error *err)
{
    struct command_state *state = cmd->state;
    int at_verb[COMMAND_DEPTH];
    size_t next_verb = 0;
    bool options_over = false;
    if (!find_verbs(state, argc, argv, &state->path, at_verb, err)) {
        return false;
    }
    if (state->path.count == 0) {
        baton_fail(err, BATON_E_usage, "which command? See `baton --help`");
        return false;
    }
    cmd->self = state->path.verbs[state->path.count - 1];
    state->own = calloc(cmd->self->n_options + 1, sizeof(*state->own));
    state->args = calloc((size_t)argc + 1, sizeof(*state->args));
    if (state->own == NULL || state->args == NULL ||
        !prepare(command_common, COMMAND_COMMON_COUNT, state->common, argc) ||
        !prepare(cmd->self->options, cmd->self->n_options, state->own, argc)) {
        baton_fail(err, BATON_E_no_memory, "out of memory");
        return false;
    }
    cmd->args = state->args;
    for (int i = 0; i < argc;) {
        if (next_verb < state->path.count && i == at_verb[next_verb]) {
            next_verb++;
            i++;
        } else if (!options_over && strcmp(argv[i], "--") == 0) {
            options_over = true;
            i++;
        } else if (!options_over && is_option(argv[i])) {
            if (!take_option(cmd, argc, argv, &i, err)) {
                return false;
            }
        } else {
            state->args[cmd->n_args++] = argv[i++];
        }
    }
    cmd->json = state->common[COMMON_json].given;
    cmd->quiet = state->common[COMMON_quiet].given;
    cmd->verbose = state->common[COMMON_verbose].given;
    cmd->config_path = state->common[COMMON_config].text;
    cmd->sets = state->common[COMMON_set].list;
    cmd->n_sets = state->common[COMMON_set].n_list;
    if (cmd->self->run == NULL) {
        struct buf name = BUF_INIT;
        command_name(&state->path, &name);
        baton_fail(err, BATON_E_usage, "which command of `%s`? See `%s --help`",
                   buf_ok(&name) ? name.data : "", buf_ok(&name) ? name.data : "");
        buf_done(&name);
        return false;
    }
    return enough(cmd, err);
}

void command_parse_done(struct command *cmd)
{
    struct command_state *state = cmd->state;
    for (size_t i = 0; i < COMMAND_COMMON_COUNT; i++) {
        free(state->common[i].list);
    }
    for (size_t i = 0; state->own != NULL && i < cmd->self->n_options; i++) {
        free(state->own[i].list);
    }
    free(state->own);
    free(state->args);
}

/* ---- what commands ask ---- */

static const struct option_value *value_of(const struct command *cmd, const char *name)
{
    const struct option_value *value = NULL;
    for (size_t i = 0; i < cmd->self->n_options; i++) {
        if (strcmp(cmd->self->options[i].name, name) == 0) {
            value = &cmd->state->own[i];
        }
    }
    BATON_PRE(value != NULL); /* a name that is not in the verb's table */
    return value;
}

bool command_given(const struct command *cmd, const char *name)
{
    return value_of(cmd, name)->given;
}

bool command_flag(const struct command *cmd, const char *name)
{
    return value_of(cmd, name)->given;
}

const char *command_text(const struct command *cmd, const char *name)
{
    return value_of(cmd, name)->text;
}

int64_t command_int(const struct command *cmd, const char *name)
{
    return value_of(cmd, name)->number;
}

const char *const *command_list(const struct command *cmd, const char *name, size_t *ret_count)
{
    const struct option_value *value = value_of(cmd, name);
    *ret_count = value->n_list;
    return value->list;
}
