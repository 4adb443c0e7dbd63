/*
 * Attempts that run here, or have run and are not settled: a hash table by turn id.
 * Bounded by `parallel`, since nothing is claimed without capacity.
 * Called by every file of the worker.
 */
#include "worker/live.h"

#include "common/base/check.h"
#include "common/base/hash.h"
#include "common/record/turn_record.h"

#include <stdlib.h>
#include <string.h>

#define SLOTS 2048 /* twice the largest `parallel` */

bool lives_init(struct lives *lives)
{
    *lives = (struct lives){.n_slots = SLOTS};
    lives->slots = calloc(SLOTS, sizeof(*lives->slots));
    return lives->slots != NULL;
}

static void live_free(struct live *live)
{
    turn_record_done(&live->record);
    free(live->end.result);
    free(live);
}

void lives_done(struct lives *lives)
{
    for (size_t i = 0; lives->slots != NULL && i < lives->n_slots; i++) {
        while (lives->slots[i] != NULL) {
            struct live *live = lives->slots[i];
            lives->slots[i] = live->next;
            live_free(live);
        }
    }
    free(lives->slots);
    *lives = (struct lives){0};
}

/* Turn ids are the beginning of a SHA-256: their first digits are a hash already. */
size_t turn_hash(const char *turn_id)
{
    size_t hash = 0;
    for (int i = 0; i < 8 && turn_id[i] != '\0'; i++) {
        hash = hash * 31 + (unsigned char)turn_id[i];
    }
    return hash;
}

static size_t slot_of(const struct lives *lives, const char *turn_id)
{
    return turn_hash(turn_id) % lives->n_slots;
}

struct live *lives_find(const struct lives *lives, const char *turn_id)
{
    for (struct live *live = lives->slots[slot_of(lives, turn_id)]; live != NULL;
         live = live->next) {
        if (strcmp(live->record.id.s, turn_id) == 0) {
            return live;
        }
    }
    return NULL;
}

/* One number for a turn and its attempt; 0 is none. */
static uint64_t start_of(const char *turn_id, int attempt)
{
    uint64_t hash = hash_bytes(HASH_START, turn_id, strlen(turn_id));
    hash = hash_bytes(hash, &attempt, sizeof(attempt));
    return hash != 0 ? hash : 1;
}

bool lives_start_once(struct lives *lives, const char *turn_id, int attempt)
{
    const uint64_t start = start_of(turn_id, attempt);
    for (size_t i = 0; i < LIVES_STARTS; i++) {
        if (lives->starts[i] == start) {
            return false;
        }
    }
    lives->starts[lives->n_starts++ % LIVES_STARTS] = start;
    return true;
}

struct live *lives_add(struct lives *lives, struct turn_record *take_record, int32_t partition)
{
    BATON_PRE(lives_find(lives, take_record->id.s) == NULL);
    struct live *live = calloc(1, sizeof(*live));
    if (live == NULL) {
        return NULL;
    }
    size_t slot = slot_of(lives, take_record->id.s);
    live->record = *take_record;
    turn_record_init(take_record);
    live->partition = partition;
    live->phase = LIVE_running;
    live->next = lives->slots[slot];
    lives->slots[slot] = live;
    lives->count++;
    lives->running++;
    lives->changes++;
    return live;
}

void lives_end(struct lives *lives, struct live *live, const struct recorded_end *take_end)
{
    BATON_PRE(live->phase == LIVE_running);
    live->phase = LIVE_ended;
    live->end = *take_end;
    lives->running--;
    lives->changes++;
    live->ended_prev = lives->ended_last;
    if (lives->ended_last != NULL) {
        lives->ended_last->ended_next = live;
    } else {
        lives->ended = live;
    }
    lives->ended_last = live;
}

void lives_remove(struct lives *lives, struct live *live)
{
    struct live **at = &lives->slots[slot_of(lives, live->record.id.s)];
    while (*at != live) {
        at = &(*at)->next;
    }
    *at = live->next;
    lives->count--;
    if (live->phase == LIVE_running) {
        lives->running--;
        lives->changes++;
    } else {
        *(live->ended_prev != NULL ? &live->ended_prev->ended_next : &lives->ended) =
            live->ended_next;
        *(live->ended_next != NULL ? &live->ended_next->ended_prev : &lives->ended_last) =
            live->ended_prev;
    }
    live_free(live);
}

void lives_each(struct lives *lives, void (*fn)(struct live *, void *), void *arg)
{
    for (size_t i = 0; i < lives->n_slots; i++) {
        struct live *next;
        for (struct live *live = lives->slots[i]; live != NULL; live = next) {
            next = live->next;
            fn(live, arg);
        }
    }
}
