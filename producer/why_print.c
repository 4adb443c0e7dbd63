/*
 * Why a turn stands where it stands, printed: sentences for people, an object for scripts.
 * In: producer/cmd_turns_why.c  Out: producer/why.c
 */
#include "producer/why_said.h"

#include "common/base/jsonw.h"
#include "common/base/role.h"
#include "common/base/state.h"
#include "common/base/text.h"

#include <string.h>

static const struct {
    const char *word;
    const char *text;
} whos[] = {
#define WHO_ROW(word, text) {#word, text},
    WHY_WHO(WHO_ROW)
#undef WHO_ROW
};

/* ---- for people ---- */

static void paragraph(struct buf *out, const char *title, const struct steps *steps, size_t width)
{
    if (steps->count == 0) {
        return;
    }
    buf_printf(out, "\n%s\n", title);
    for (size_t i = 0; i < steps->count; i++) {
        const struct step *step = &steps->list[i];
        struct buf line = BUF_INIT;
        if (step->command != NULL) {
            buf_printf(out, "  %s\n", step->command);
        } else if (step->at.v != 0) {
            buf_printf(&line, "%s  ", wall_text(step->at).s);
        }
        text_add(&line, step->text, strlen(step->text), 0);
        if (buf_ok(&line)) {
            text_wrap(out, line.data, step->command != NULL ? 6 : 2, step->command != NULL ? 6 : 4,
                      width);
        }
        buf_done(&line);
    }
}

void why_print_text(const struct why_sources *sources, size_t width, struct buf *out)
{
    struct why why = why_look_at(sources);
    const struct turn_life *life = sources->life;
    buf_printf(out, "turn %s", sources->turn_id);
    if (life->found) {
        buf_printf(out, ": %s at %s, %s", role_word(life->now.role), life->service,
                   turn_state_word(life->now.state));
    }
    buf_add_char(out, '\n');
    paragraph(out, "What happened (UTC)", &why.happened, width);
    paragraph(out, "Now", &why.now, width);
    buf_printf(out, "\nWho must act\n  %s\n", whos[why.who].text);
    paragraph(out, "What can be done", &why.commands, width);
    why_done(&why);
}

/* ---- for scripts ---- */

static void steps_json(struct jsonw *w, const char *key, const struct steps *steps)
{
    jsonw_key(w, key);
    jsonw_begin_array(w);
    for (size_t i = 0; i < steps->count; i++) {
        const struct step *step = &steps->list[i];
        jsonw_begin_object(w);
        if (step->command != NULL) {
            jsonw_key_text(w, "command", step->command);
        } else {
            jsonw_key_text(w, "at", step->at.v != 0 ? wall_text(step->at).s : NULL);
        }
        jsonw_key_text(w, step->command != NULL ? "effect" : "text", step->text);
        jsonw_end(w);
    }
    jsonw_end(w);
}

void why_print_json(const struct why_sources *sources, struct buf *out)
{
    struct why why = why_look_at(sources);
    const struct turn_life *life = sources->life;
    struct jsonw w = jsonw_to(out);
    jsonw_begin_object(&w);
    jsonw_key_text(&w, "turn_id", sources->turn_id);
    jsonw_key_text(&w, "service", life->found ? life->service : sources->waits_at);
    jsonw_key_text(&w, "role", life->found ? role_word(life->now.role) : NULL);
    jsonw_key_text(&w, "state", life->found ? turn_state_word(life->now.state) : NULL);
    jsonw_key_text(&w, "run_id",
                   life->found && life->now.run_id.s[0] != '\0' ? life->now.run_id.s : NULL);
    steps_json(&w, "happened", &why.happened);
    steps_json(&w, "now", &why.now);
    jsonw_key_text(&w, "who", whos[why.who].word);
    jsonw_key_text(&w, "next_at", why.next_at.v != 0 ? wall_text(why.next_at).s : NULL);
    steps_json(&w, "commands", &why.commands);
    jsonw_end(&w);
    buf_add_char(out, '\n');
    why_done(&why);
}
