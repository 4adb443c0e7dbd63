/*
 * Many dead letters at once: which are chosen, and what is told of them.
 * In: producer/cmd_dlq_replay.c, producer/cmd_dlq_discard.c  Out: producer/dead.c
 */
#include "producer/cmd_dlq.h"

#include "common/base/jsonw.h"
#include "common/base/text.h"

#include <stdlib.h>
#include <string.h>

void dlq_said(struct command *cmd, const char *id, const char *service, const char *status,
              const char *note)
{
    struct buf out = BUF_INIT;
    if (cmd->json) {
        struct jsonw w = jsonw_to(&out);
        jsonw_begin_object(&w);
        jsonw_key_text(&w, "id", id);
        jsonw_key_text(&w, "status", status);
        jsonw_key_text(&w, "service", dlq_or_null(service));
        jsonw_key_text(&w, "note", note);
        jsonw_end(&w);
        buf_add_char(&out, '\n');
    } else {
        buf_printf(&out, "%-9s  %s%s", status, id, note != NULL ? "  " : "");
        text_add(&out, note != NULL ? note : "", note != NULL ? strlen(note) : 0, 0);
        buf_add_char(&out, '\n');
    }
    command_print(cmd, &out);
    buf_done(&out);
}

/* ---- many at once ---- */

static bool on_chosen(void *arg, const struct dead *dead)
{
    struct dlq_chosen *chosen = arg;
    if (chosen->hold != NULL && dead->repeated) {
        chosen->held++;
        dlq_said(chosen->hold, dead->id, dead->service, "held",
                 "it failed in the same way again after its last replay; --again replays it, too");
        return true;
    }
    if (chosen->count == chosen->max) {
        chosen->left_out++;
        return true;
    }
    struct dlq_choice *choice = &chosen->list[chosen->count++];
    memcpy(choice->id, dead->id, sizeof(choice->id));
    memcpy(choice->service, dead->service, sizeof(choice->service));
    memcpy(choice->run_id, dead->run_id, sizeof(choice->run_id));
    memcpy(choice->role, dead->role, sizeof(choice->role));
    choice->attempt = dead->attempt;
    choice->parked = dead->parked;
    return true;
}

baton_code dlq_choose(struct command *cmd, struct session *session, struct dlq_chosen *chosen,
                      struct baton_error *err)
{
    struct dlq_filter filter;
    chosen->max = (size_t)command_int(cmd, "limit");
    baton_code rc = dlq_filter_of(cmd, &filter, err);
    if (rc == BATON_OK && (chosen->list = calloc(chosen->max, sizeof(*chosen->list))) == NULL) {
        rc = baton_fail(err, BATON_E_no_memory, "no memory for a list");
    }
    return rc == BATON_OK ? dead_each(session, &filter.dead, on_chosen, chosen, err) : rc;
}

void dlq_tell_rest(struct command *cmd, const struct dlq_chosen *chosen, const struct pace *pace)
{
    if (chosen->count == 0 && chosen->held == 0) {
        command_note(cmd, "no dead letter is so");
    }
    if (pace->done < chosen->count) {
        command_note(cmd, "interrupted: %s %zu of %zu; the same command goes on with the others",
                     pace->verb, pace->done, chosen->count);
    }
    if (chosen->held > 0) {
        command_note(cmd, "%zu held back: mend their cause first (`baton turns why ID`)",
                     chosen->held);
    }
    if (chosen->left_out > 0) {
        command_note(cmd, "and %zu more, beyond --limit", chosen->left_out);
    }
}
