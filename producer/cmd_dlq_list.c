/*
 * `baton dlq list | stats`.
 * In: producer/cmd_dlq.c  Out: producer/dead.c, producer/pace.c
 */
#include "producer/cmd_dlq.h"

#include "common/base/array.h"
#include "common/base/check.h"
#include "common/base/jsonw.h"
#include "common/base/limits.h"
#include "common/base/quantity.h"
#include "producer/pace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct list {
    struct command *cmd;
    struct table *table; /* NULL: JSON */
    struct buf out;
    size_t count;
    struct tail_position last;
};

/* position: NULL where every one is asked for, in the order of the log. */
static void dead_json(const struct dead *dead, const char *position, struct buf *out)
{
    struct jsonw w = jsonw_to(out);
    jsonw_begin_object(&w);
    dlq_members(&w, dead);
    if (position != NULL) {
        jsonw_key_text(&w, "position", position);
    }
    jsonw_end(&w);
    buf_add_char(out, '\n');
}

/* On a terminal what fits 80 columns: no word that chooses among them (--class, --code) is cut. */
static void add_cause(struct table *table, baton_code code, bool has_class, enum failure class)
{
    const char *word = has_class ? failure_word(class) : NULL;
    if (command_width() > 0) {
        table_whole(table, word != NULL ? word : baton_code_word(code));
        return;
    }
    table_text(table, baton_code_word(code));
    table_text(table, word);
}

static void add_time(struct table *table, struct wall_ms at)
{
    table_whole(table, command_width() > 0 ? quantity_age_text(wall_now().v - at.v).s
                                           : command_time(at).s);
}

static void dead_row(struct table *table, const struct dead *dead)
{
    if (dead->parked) {
        table_bytes(table, dead->id, 12);
    } else {
        table_text(table, dead->id);
    }
    table_whole(table, dead->parked ? "parked" : "rejected");
    table_text(table, dlq_or_null(dead->role));
    table_text(table, dead->service);
    table_text(table, dlq_or_null(dead->run_id[0] != '\0' ? dead->run_id : dead->task_id));
    add_cause(table, dead->code, dead->has_class, dead->class);
    add_time(table, dead->at);
}

static bool on_each(void *arg, const struct dead *dead)
{
    struct list *list = arg;
    dead_json(dead, NULL, &list->out);
    return list->out.len < 65536 || command_print(list->cmd, &list->out);
}

static bool on_page(void *arg, const struct dead *dead, const char *position)
{
    struct list *list = arg;
    list->count++;
    snprintf(list->last.s, sizeof(list->last.s), "%s", position);
    if (list->table != NULL) {
        dead_row(list->table, dead);
        return true;
    }
    dead_json(dead, position, &list->out);
    return list->out.len < 65536 || command_print(list->cmd, &list->out);
}

static baton_code read_page(struct command *cmd, struct list *list, bool *ret_more,
                            struct baton_error *err)
{
    struct session session = {0};
    struct dlq_filter filter;
    struct reading reading = reading_begin(cmd);
    const struct tail_spec page = {
        .max = command_given(cmd, "limit") ? (size_t)command_int(cmd, "limit") : LIMIT_LIST,
        .before = command_text(cmd, "before"),
        .progress = reading_shows,
        .progress_arg = &reading,
    };
    baton_code rc = dlq_filter_of(cmd, &filter, err);
    if (rc == BATON_OK && (rc = session_open(cmd, &session, err)) == BATON_OK) {
        rc = dead_page(&session, &filter.dead, &page, on_page, list, ret_more, err);
    }
    reading_end(&reading);
    session_done(&session);
    return rc;
}

static int run_list(struct command *cmd)
{
    static const char *const wide[] = {"ID",          "KIND", "ROLE",  "SERVICE",
                                       "TASK OR RUN", "CODE", "CLASS", "SINCE UTC"};
    static const char *const narrow[] = {"ID",          "KIND",          "ROLE", "SERVICE",
                                         "TASK OR RUN", "CLASS OR CODE", "AGE"};
    const bool terminal = command_width() > 0;
    struct baton_error err = {BATON_OK, ""};
    struct list list = {.cmd = cmd, .out = BUF_INIT};
    int status = 0;
    bool more = false;
    baton_code rc = BATON_OK;
    if (!cmd->json &&
        (list.table = table_new(terminal ? narrow : wide,
                                terminal ? COUNT_OF(narrow) : COUNT_OF(wide))) == NULL) {
        rc = baton_fail(&err, BATON_E_no_memory, "no memory for a table");
    }
    if (rc == BATON_OK) {
        rc = cmd->json && !command_given(cmd, "limit") && !command_given(cmd, "before")
                 ? dlq_read(cmd, on_each, &list, &err)
                 : read_page(cmd, &list, &more, &err);
    }
    if (rc != BATON_OK) {
        status = command_fail(cmd, rc, &err);
    } else if (cmd->json) {
        command_print(cmd, &list.out);
    } else if (list.count == 0) {
        command_note(cmd,
                     command_given(cmd, "before") ? "no older dead letters" : "no dead letters");
    } else {
        command_table(cmd, list.table);
        if (more) {
            command_note(cmd, "older ones: --before %s", list.last.s);
        }
    }
    table_free(list.table);
    buf_done(&list.out);
    return status;
}

/* clang-format off */
static const struct command_option list_options[] = {
    DLQ_FILTER_OPTIONS,
    {.name = "limit", .letter = 'n', .argument = "N", .kind = OPTION_int, .min = 1, .max = DLQ_LIST_MAX,
     .help = "The newest N, newest first. Without it 50 for people, and with --json every one, as it is read."},
    {.name = "before", .argument = "POSITION", .kind = OPTION_text,
     .help = "The next page: only what is older. A page says its position at its end, and with --json in each line."},
};
/* clang-format on */

const struct baton_command cmd_dlq_list = {
    .name = "list",
    .summary = "list parked turns and rejected records",
    .usage = DLQ_FILTER_USAGE " [--limit N] [--before POSITION] [--json]",
    .description =
        "The newest first, read from the ends of the logs, so that a page costs the same however "
        "many there are; a filter that "
        "lets little through reads on. "
        "A parked turn is open and waits for an operator; its id is the turn's. A rejected record "
        "never became a turn, because it was not proven, not permitted or not addressed to the "
        "service; its id is service:partition:offset, and what it says of itself is not to be "
        "believed. A rejected request of a run has the id coordinator:partition:offset; one that "
        "was proven and refused was answered, and is no dead letter.",
    .options = list_options,
    .n_options = COUNT_OF(list_options),
    .examples = "baton dlq list\n# what was refused by a provider\nbaton dlq list --where "
                "class=auth,newer=1d\n",
    .run = run_list,
};

/* ---- stats ---- */

/* Those that are alike: how many, since when. */
struct alike {
    char service[SERVICE_MAX + 1];
    bool parked;
    baton_code code;
    bool has_class;
    enum failure class;
    int64_t count;
    struct wall_ms oldest;
    struct wall_ms newest;
};

struct day {
    int64_t number; /* since 1970, UTC */
    int64_t parked;
    int64_t rejected;
};

struct stats {
    struct alike *alike;
    size_t n_alike;
    size_t cap_alike;
    struct day *days;
    size_t n_days;
    size_t cap_days;
    int64_t total;
    int64_t repeated;
};

#define DAY_MS 86400000
#define DAYS_SHOWN 14 /* to people */

static struct alike *alike_of(struct stats *stats, const struct dead *dead)
{
    for (size_t i = 0; i < stats->n_alike; i++) {
        struct alike *one = &stats->alike[i];
        if (one->parked == dead->parked && one->code == dead->code &&
            one->has_class == dead->has_class && (!one->has_class || one->class == dead->class) &&
            strcmp(one->service, dead->service) == 0) {
            return one;
        }
    }
    stats->alike =
        array_grown(stats->alike, stats->n_alike, &stats->cap_alike, sizeof(*stats->alike));
    struct alike *one = &stats->alike[stats->n_alike++];
    *one = (struct alike){.parked = dead->parked,
                          .code = dead->code,
                          .has_class = dead->has_class,
                          .class = dead->class,
                          .oldest = dead->at,
                          .newest = dead->at};
    snprintf(one->service, sizeof(one->service), "%s", dead->service);
    return one;
}

static struct day *day_of(struct stats *stats, struct wall_ms at)
{
    const int64_t number = at.v / DAY_MS;
    for (size_t i = stats->n_days; i > 0; i--) {
        if (stats->days[i - 1].number == number) {
            return &stats->days[i - 1];
        }
    }
    stats->days = array_grown(stats->days, stats->n_days, &stats->cap_days, sizeof(*stats->days));
    stats->days[stats->n_days] = (struct day){.number = number};
    return &stats->days[stats->n_days++];
}

static bool on_counted(void *arg, const struct dead *dead)
{
    struct stats *stats = arg;
    struct alike *one = alike_of(stats, dead);
    struct day *day = day_of(stats, dead->at);
    one->count++;
    one->oldest = dead->at.v < one->oldest.v ? dead->at : one->oldest;
    one->newest = dead->at.v > one->newest.v ? dead->at : one->newest;
    day->parked += dead->parked ? 1 : 0;
    day->rejected += dead->parked ? 0 : 1;
    stats->total++;
    stats->repeated += dead->repeated ? 1 : 0;
    return true;
}

static int by_count(const void *a, const void *b)
{
    const struct alike *one = a;
    const struct alike *other = b;
    return one->count != other->count ? (one->count > other->count ? -1 : 1)
                                      : strcmp(one->service, other->service);
}

static int by_day(const void *a, const void *b)
{
    const struct day *one = a;
    const struct day *other = b;
    return one->number > other->number ? -1 : one->number < other->number ? 1 : 0;
}

/* "2026-11-29" */
static struct time_text day_text(const struct day *day)
{
    struct time_text text = wall_text((struct wall_ms){day->number * DAY_MS});
    text.s[10] = '\0';
    return text;
}

static void stats_json(const struct stats *stats, struct buf *out)
{
    struct jsonw w = jsonw_to(out);
    jsonw_begin_object(&w);
    jsonw_key_int(&w, "total", stats->total);
    jsonw_key_int(&w, "repeated", stats->repeated);
    jsonw_key(&w, "groups");
    jsonw_begin_array(&w);
    for (size_t i = 0; i < stats->n_alike; i++) {
        const struct alike *one = &stats->alike[i];
        jsonw_begin_object(&w);
        jsonw_key_text(&w, "service", one->service);
        jsonw_key_text(&w, "kind", one->parked ? "parked" : "rejected");
        jsonw_key_text(&w, "code", baton_code_word(one->code));
        jsonw_key_text(&w, "class", one->has_class ? failure_word(one->class) : NULL);
        jsonw_key_int(&w, "count", one->count);
        jsonw_key_text(&w, "oldest", wall_text(one->oldest).s);
        jsonw_key_text(&w, "newest", wall_text(one->newest).s);
        jsonw_end(&w);
    }
    jsonw_end(&w);
    jsonw_key(&w, "days");
    jsonw_begin_array(&w);
    for (size_t i = 0; i < stats->n_days; i++) {
        jsonw_begin_object(&w);
        jsonw_key_text(&w, "day", day_text(&stats->days[i]).s);
        jsonw_key_int(&w, "parked", stats->days[i].parked);
        jsonw_key_int(&w, "rejected", stats->days[i].rejected);
        jsonw_end(&w);
    }
    jsonw_end(&w);
    jsonw_end(&w);
    buf_add_char(out, '\n');
}

static void stats_tables(struct command *cmd, const struct stats *stats, struct table *groups,
                         struct table *days)
{
    for (size_t i = 0; i < stats->n_alike; i++) {
        const struct alike *one = &stats->alike[i];
        table_int(groups, one->count);
        table_text(groups, one->service);
        table_whole(groups, one->parked ? "parked" : "rejected");
        table_whole(groups, baton_code_word(one->code));
        table_whole(groups, one->has_class ? failure_word(one->class) : NULL);
        add_time(groups, one->oldest);
        add_time(groups, one->newest);
    }
    command_table(cmd, groups);
    struct buf out = BUF_INIT;
    buf_add_char(&out, '\n');
    command_print(cmd, &out);
    buf_done(&out);
    for (size_t i = 0; i < stats->n_days && i < DAYS_SHOWN; i++) {
        table_whole(days, day_text(&stats->days[i]).s);
        table_int(days, stats->days[i].parked);
        table_int(days, stats->days[i].rejected);
    }
    command_table(cmd, days);
    if (stats->n_days > DAYS_SHOWN) {
        command_note(cmd, "and %zu earlier days; --json has all", stats->n_days - DAYS_SHOWN);
    }
    if (stats->repeated > 0) {
        command_note(
            cmd, "%lld of them failed again in the same way after a replay: mend the cause first",
            (long long)stats->repeated);
    }
}

static baton_code stats_print(struct command *cmd, struct stats *stats, struct baton_error *err)
{
    const bool terminal = command_width() > 0; /* ages there */
    const char *const group_titles[] = {"COUNT",
                                        "SERVICE",
                                        "KIND",
                                        "CODE",
                                        "CLASS",
                                        terminal ? "OLDEST" : "OLDEST UTC",
                                        terminal ? "NEWEST" : "NEWEST UTC"};
    static const char *const day_titles[] = {"DAY", "PARKED", "REJECTED"};
    if (stats->total > 0) { /* else there are no arrays, and qsort takes none that is not there */
        qsort(stats->alike, stats->n_alike, sizeof(*stats->alike), by_count);
        qsort(stats->days, stats->n_days, sizeof(*stats->days), by_day);
    }
    if (cmd->json) {
        struct buf out = BUF_INIT;
        stats_json(stats, &out);
        command_print(cmd, &out);
        buf_done(&out);
        return BATON_OK;
    }
    if (stats->total == 0) {
        command_note(cmd, "no dead letters");
        return BATON_OK;
    }
    struct table *groups = table_new(group_titles, COUNT_OF(group_titles));
    struct table *days = table_new(day_titles, COUNT_OF(day_titles));
    baton_code rc = BATON_OK;
    if (groups == NULL || days == NULL) {
        rc = baton_fail(err, BATON_E_no_memory, "no memory for a table");
    } else {
        stats_tables(cmd, stats, groups, days);
    }
    table_free(groups);
    table_free(days);
    return rc;
}

static int run_stats(struct command *cmd)
{
    struct baton_error err = {BATON_OK, ""};
    struct stats stats = {0};
    baton_code rc = dlq_read(cmd, on_counted, &stats, &err);
    if (rc == BATON_OK) {
        rc = stats_print(cmd, &stats, &err);
    }
    free(stats.alike);
    free(stats.days);
    return rc == BATON_OK ? 0 : command_fail(cmd, rc, &err);
}

static const struct command_option stats_options[] = {DLQ_FILTER_OPTIONS};

const struct baton_command cmd_dlq_stats = {
    .name = "stats",
    .summary = "count dead letters by service, code and class, and by day",
    .usage = DLQ_FILTER_USAGE " [--json]",
    .description =
        "The most frequent first: what to look at when many have died. Days are UTC, the "
        "newest first; a parked turn counts on the day on which it was parked last.",
    .options = stats_options,
    .n_options = COUNT_OF(stats_options),
    .examples = "baton dlq stats\n# what died within the last hour\nbaton dlq stats --newer 1h\n",
    .run = run_stats,
};
