/*
 * `baton dlq show | export`: one dead letter, or all of them with their original bytes.
 * In: producer/cmd_dlq.c  Out: topics/letters.c, topics/turn_log.c, producer/life.c
 */
#include "producer/cmd_dlq.h"

#include "common/base/check.h"
#include "common/base/jsonw.h"
#include "common/base/text.h"
#include "common/record/payload.h"
#include "producer/cmd_turns.h"
#include "producer/life.h"

#include <string.h>
#include <unistd.h>

struct showing {
    struct command *cmd;
    bool value; /* --value: the raw bytes */
    struct buf out;
};

static void letter_json(const struct letter *letter, struct buf *out)
{
    struct jsonw w = jsonw_to(out);
    jsonw_begin_object(&w);
    jsonw_key_text(&w, "id", letter->id.s);
    jsonw_key_text(&w, "kind", "rejected");
    jsonw_key_text(&w, "service", letter->service);
    jsonw_key_text(&w, "code", baton_code_word(letter->code));
    jsonw_key_text(&w, "message", dlq_or_null(letter->message));
    jsonw_key_text(&w, "at", wall_text(letter->at).s);
    jsonw_key_text(&w, "topic", letter->topic);
    jsonw_key_int(&w, "partition", letter->from_partition);
    jsonw_key_int(&w, "offset", letter->from_offset);
    jsonw_key_text(&w, "turn_id", dlq_or_null(letter->turn_id));
    jsonw_key_text(&w, "role", dlq_or_null(letter->role));
    jsonw_key_text(&w, "task_id", dlq_or_null(letter->task_id));
    jsonw_key_text(&w, "run_id", dlq_or_null(letter->run_id));
    jsonw_key_text(&w, "request", dlq_or_null(letter->kind));
    jsonw_key_int(&w, "value_bytes",
                  letter->record->value != NULL ? (int64_t)letter->record->value_len : -1);
    jsonw_key(&w, "headers");
    jsonw_begin_array(&w);
    for (size_t i = 0; i < letter->record->n_headers; i++) {
        const struct log_header *header = &letter->record->headers[i];
        jsonw_begin_object(&w);
        jsonw_key_text(&w, "name", header->name);
        jsonw_key(&w, "value");
        if (header->value != NULL) {
            jsonw_bytes(&w, header->value, header->value_len);
        } else {
            jsonw_null(&w);
        }
        jsonw_end(&w);
    }
    jsonw_end(&w);
    jsonw_end(&w);
    buf_add_char(out, '\n');
}

static void line(struct buf *out, const char *name, const char *text)
{
    buf_printf(out, "%-10s ", name);
    text_add(out, text, strlen(text), 0);
    buf_add_char(out, '\n');
}

static void letter_text(const struct letter *letter, struct buf *out)
{
    line(out, "letter", letter->id.s);
    buf_printf(out, "%-10s rejected: %s (%s)\n", "why", baton_code_word(letter->code),
               baton_code_text(letter->code));
    line(out, "message", letter->message);
    line(out, "at", wall_text(letter->at).s);
    buf_printf(out, "%-10s ", "from");
    text_add(out, letter->topic, strlen(letter->topic), 0);
    buf_printf(out, ", partition %d, offset %lld\n", (int)letter->from_partition,
               (long long)letter->from_offset);
    if (strcmp(letter->service, LETTERS_OF_RUNS) == 0) {
        line(out, "run", letter->run_id[0] != '\0' ? letter->run_id : "its key is no run id");
        line(out, "claims", letter->kind[0] != '\0' ? letter->kind : "no request that there is");
    } else {
        line(out, "turn", letter->turn_id[0] != '\0' ? letter->turn_id : "its key is no turn id");
        line(out, "claims", letter->role[0] != '\0' ? letter->role : "no role");
    }
    for (size_t i = 0; i < letter->record->n_headers; i++) {
        const struct log_header *header = &letter->record->headers[i];
        buf_printf(out, "%-10s ", "header");
        text_add(out, header->name, strlen(header->name), 100);
        buf_add_text(out, header->value == NULL ? " (null)" : " ");
        text_add(out, header->value != NULL ? header->value : "", header->value_len, 200);
        buf_add_char(out, '\n');
    }
    if (letter->record->value == NULL) {
        line(out, "value", "null");
    } else {
        buf_printf(out, "%-10s %zu bytes; `baton dlq show %s --value >FILE` writes them\n", "value",
                   letter->record->value_len, letter->id.s);
    }
}

static bool on_shown(void *arg, const struct letter *letter)
{
    struct showing *showing = arg;
    if (showing->value) {
        buf_add(&showing->out, letter->record->value,
                letter->record->value != NULL ? letter->record->value_len : 0);
    } else if (showing->cmd->json) {
        letter_json(letter, &showing->out);
    } else {
        letter_text(letter, &showing->out);
    }
    return false;
}

static baton_code show_turn(struct command *cmd, struct session *session, struct showing *showing,
                            struct baton_error *err)
{
    struct turn_life life = {.found = false};
    struct turn_id id;
    baton_code rc = turns_find(session, cmd->args[0], &id, &life, NULL, err);
    if (rc == BATON_OK && life.now.state != TURN_parked) {
        rc =
            baton_fail(err, BATON_E_not_parked, "turn %s is %s, no dead letter; `baton turns show`",
                       id.s, turn_state_word(life.now.state));
    }
    if (rc == BATON_OK && showing->value) {
        buf_add(&showing->out, life.now.handoff, life.now.handoff_len);
    } else if (rc == BATON_OK && cmd->json) {
        life_print_json(&life, &showing->out);
    } else if (rc == BATON_OK) {
        life_print_text(&life, command_width(), &showing->out);
    }
    turn_life_done(&life);
    return rc;
}

static int run_show(struct command *cmd)
{
    struct session session = {0};
    struct baton_error err = {BATON_OK, ""};
    struct showing showing = {.cmd = cmd, .value = command_flag(cmd, "value"), .out = BUF_INIT};
    int status = 0;
    if (showing.value && (cmd->json || isatty(STDOUT_FILENO) == 1)) {
        return command_usage(cmd,
                             "--value writes foreign bytes as they are: to a file or a pipe, not "
                             "to a terminal, and not as --json");
    }
    baton_code rc = session_open(cmd, &session, &err);
    if (rc == BATON_OK) {
        rc = letter_id_valid(cmd->args[0])
                 ? letters_one(session.log, session.config, cmd->args[0], on_shown, &showing, &err)
                 : show_turn(cmd, &session, &showing, &err);
    }
    if (rc == BATON_OK) {
        command_print(cmd, &showing.out);
    } else {
        status = command_fail(cmd, rc, &err);
    }
    buf_done(&showing.out);
    session_done(&session);
    return status;
}

/* clang-format off */
static const struct command_option show_options[] = {
    {.name = "value", .kind = OPTION_flag,
     .help = "Writes the raw value instead; refused on a terminal."},
};
/* clang-format on */

const struct baton_command cmd_dlq_show = {
    .name = "show",
    .summary = "show one dead letter",
    .usage = "ID [--json]\nID --value >FILE",
    .description = "ID is what `baton dlq list` shows: a turn id (or its first digits) of a parked "
                   "turn, service:partition:offset of a rejected record, or "
                   "coordinator:partition:offset of a rejected request.",
    .options = show_options,
    .n_options = COUNT_OF(show_options),
    .examples = "baton dlq show 7f3a90\nbaton dlq show example:2:17 --value >record.json\n",
    .args_min = 1,
    .args_max = 1,
    .run = run_show,
};

/* ---- export ---- */

struct exporting {
    struct command *cmd;
    struct buf out;
    size_t count;
};

static void key_base64(struct jsonw *w, const void *bytes, size_t len)
{
    struct buf text = BUF_INIT;
    if (bytes != NULL) {
        base64_encode(&text, bytes, len);
    }
    jsonw_key_text(w, "value_base64", bytes == NULL ? NULL : text.data != NULL ? text.data : "");
    buf_done(&text);
}

static bool on_exported(void *arg, const struct dead *dead)
{
    struct exporting *exporting = arg;
    struct jsonw w = jsonw_to(&exporting->out);
    jsonw_begin_object(&w);
    dlq_members(&w, dead);
    key_base64(&w, dead->value, dead->value_len);
    jsonw_key(&w, "headers");
    jsonw_begin_array(&w);
    for (size_t i = 0; i < dead->n_headers; i++) {
        const struct log_header *header = &dead->headers[i];
        jsonw_begin_object(&w);
        jsonw_key_text(&w, "name", header->name);
        key_base64(&w, header->value, header->value_len);
        jsonw_end(&w);
    }
    jsonw_end(&w);
    jsonw_end(&w);
    buf_add_char(&exporting->out, '\n');
    exporting->count++;
    return exporting->out.len < 65536 || command_print(exporting->cmd, &exporting->out);
}

static int run_export(struct command *cmd)
{
    struct baton_error err = {BATON_OK, ""};
    struct exporting exporting = {.cmd = cmd, .out = BUF_INIT};
    if (isatty(STDOUT_FILENO) == 1) {
        return command_usage(cmd,
                             "it writes whole records: to a file or a pipe, not to a terminal");
    }
    baton_code rc = dlq_read(cmd, on_exported, &exporting, &err);
    if (rc == BATON_OK) {
        command_print(cmd, &exporting.out);
        command_note(cmd, "%zu dead letters", exporting.count);
    }
    buf_done(&exporting.out);
    return rc == BATON_OK ? 0 : command_fail(cmd, rc, &err);
}

static const struct command_option export_options[] = {DLQ_FILTER_OPTIONS};

const struct baton_command cmd_dlq_export = {
    .name = "export",
    .summary = "write dead letters with their original bytes, one JSON object a line",
    .usage = DLQ_FILTER_USAGE " >FILE",
    .description =
        "Each line has what `baton dlq list --json` says of a letter, and the original record: its "
        "value and headers in base64, byte for byte. Changes nothing. Refused on a terminal: the "
        "records are foreign, and may hold what is not for every eye.",
    .options = export_options,
    .n_options = COUNT_OF(export_options),
    .examples = "baton dlq export --newer 1d >dead.jsonl\n",
    .run = run_export,
};
