/*
 * Credential profiles that the provider has refused: which rest, why, and until when (rest.c), and the
 * note that shows them (rest_note.c).
 *
 * Included by internal.h, and by what ends and begins attempts and reads secrets. Engine's thread.
 */
#ifndef BATON_WORKER_REST_H
#define BATON_WORKER_REST_H

#include "baton/code.h"
#include "common/base/clock.h"
#include "common/base/failure.h"
#include "common/record/rest_note.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct all_rest;
struct recorded_end;
struct worker;

#define REST_NO_END INT64_MAX /* until it is cleared */
/* A credential profile: whether and why it rests. */
struct rest {
    struct mono_ms until; /* 0: it does not rest; REST_NO_END: it is refused */
    enum failure class;
    bool named; /* the provider named that time */
    struct wall_ms since;
    struct wall_ms until_wall; /* the same as until, for people; 0: no end */
    struct rest_mark mark;     /* refused: of the credential that was */
    struct mono_ms tried;      /* when an attempt with it ended last */
    struct wall_ms worked;     /* when one succeeded last */
    struct wall_ms changed;    /* when its credential was another one for the first time */
};

/* An attempt with it has ended here: the profile rests, is refused, or is up again. */
void rest_note(struct worker *w, const char *profile, const struct recorded_end *end);
/* Does not rest any more; why: for the log. */
void rest_over(struct worker *w, size_t profile, const char *why);
/* What the note of another boot says of a profile: one that was refused stays so, with the same credential. */
void rest_adopt(struct worker *w, const struct rest_profile *told);
/* An operator has said at that time that the profile is mended; "": every one. A word that is older than
 * the refusal by more than a day (clocks differ) is about another one. */
void rest_clear(struct worker *w, const char *profile, struct wall_ms at);
/* Its secrets were read again: another credential is worth another try. */
void rest_look_again(struct worker *w, size_t profile, bool env_changed);
/* The service's key is another one: the marks of refused credentials are made with it. */
void rest_mark_anew(struct worker *w);
/* Does any wait to be cleared? */
bool rest_any_refused(const struct worker *w);
/* Which profiles rest (bits). *ret_rest is set if all of them do. */
unsigned rest_look(const struct worker *w, struct all_rest *ret_rest);

/* ---- rest_note.c: the same, shown by a note ---- */

/* Reads a partition's note after a restore, and after a fold; takes over what the owner of before knew to
 * be refused. */
baton_code rest_restore(struct worker *w, int32_t partition, struct baton_error *err);
/* Writes the notes of those partitions that tell something else. */
void rest_tell(struct worker *w);

#endif
