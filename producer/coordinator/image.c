/*
 * The runs that a coordinator knows: every open one whole, of ended ones only where their record
 * lies, so that a hundred thousand of them fit. In: coordinator.c, changes.c  Out: -
 */
#include "producer/coordinator/internal.h"

#include "common/base/hash.h"

#include <stdlib.h>
#include <string.h>

static size_t bucket_of(const struct image *image, const char *run_id)
{
    return (size_t)hash_bytes(HASH_START, run_id, strlen(run_id)) & (image->n_buckets - 1);
}

static void row_free(struct image *image, struct image_row *row)
{
    image->n_open -= row->run != NULL ? 1 : 0;
    image->count--;
    run_free(row->run);
    free(row);
}

void image_done(struct image *image)
{
    for (size_t i = 0; i < image->n_buckets; i++) {
        while (image->buckets[i] != NULL) {
            struct image_row *row = image->buckets[i];
            image->buckets[i] = row->next;
            row_free(image, row);
        }
    }
    free(image->buckets);
    *image = (struct image){0};
}

struct image_row *image_find(const struct image *image, const char *run_id)
{
    struct image_row *row = image->n_buckets > 0 ? image->buckets[bucket_of(image, run_id)] : NULL;
    while (row != NULL && strcmp(row->id.s, run_id) != 0) {
        row = row->next;
    }
    return row;
}

static bool grow(struct image *image)
{
    struct image bigger = {.n_buckets = image->n_buckets == 0 ? 64 : 2 * image->n_buckets};
    bigger.buckets = calloc(bigger.n_buckets, sizeof(bigger.buckets[0]));
    if (bigger.buckets == NULL) {
        return false;
    }
    for (size_t i = 0; i < image->n_buckets; i++) {
        while (image->buckets[i] != NULL) {
            struct image_row *row = image->buckets[i];
            image->buckets[i] = row->next;
            const size_t to = bucket_of(&bigger, row->id.s);
            row->next = bigger.buckets[to];
            bigger.buckets[to] = row;
        }
    }
    free(image->buckets);
    image->buckets = bigger.buckets;
    image->n_buckets = bigger.n_buckets;
    return true;
}

/* The row of a run, made if it is not there yet, without what was known of it; NULL: no memory. */
static struct image_row *place(struct image *image, const char *run_id, int32_t partition,
                               int64_t offset)
{
    struct image_row *row = image_find(image, run_id);
    if (row == NULL) {
        if (image->count >= image->n_buckets && !grow(image)) {
            return NULL;
        }
        row = calloc(1, sizeof(*row));
        if (row == NULL) {
            return NULL;
        }
        row->id = plain_id_of(run_id);
        const size_t to = bucket_of(image, row->id.s);
        row->next = image->buckets[to];
        image->buckets[to] = row;
        image->count++;
    }
    image->n_open -= row->run != NULL ? 1 : 0;
    run_free(row->run);
    row->run = NULL;
    row->partition = partition;
    row->offset = offset;
    return row;
}

bool image_place(struct image *image, const char *run_id, int32_t partition, int64_t offset,
                 struct wall_ms at)
{
    struct image_row *row = place(image, run_id, partition, offset);
    if (row != NULL) {
        row->at = at;
    }
    return row != NULL;
}

size_t image_ended(const struct image *image, int32_t partition, struct wall_ms before,
                   const struct image_row **ret_rows, size_t max)
{
    size_t n = 0;
    for (size_t i = 0; i < image->n_buckets; i++) {
        const struct image_row *row = image->buckets[i];
        for (; row != NULL && n < max; row = row->next) {
            if (row->run == NULL && row->partition == partition && row->at.v > 0 &&
                row->at.v < before.v) {
                ret_rows[n++] = row;
            }
        }
    }
    return n;
}

bool image_fold(struct image *image, struct run *take_run, int32_t partition, int64_t offset,
                struct wall_ms at)
{
    struct image_row *row = place(image, take_run->id.s, partition, offset);
    if (row == NULL) {
        return false;
    }
    row->at = at;
    if (run_state_open(take_run->state)) {
        row->run = take_run;
        image->n_open++;
    } else {
        run_free(take_run);
    }
    return true;
}

void image_forget(struct image *image, const char *run_id)
{
    struct image_row **at = image->n_buckets > 0 ? &image->buckets[bucket_of(image, run_id)] : NULL;
    while (at != NULL && *at != NULL) {
        struct image_row *row = *at;
        if (strcmp(row->id.s, run_id) == 0) {
            *at = row->next;
            row_free(image, row);
            return;
        }
        at = &row->next;
    }
}

void image_drop_partition(struct image *image, int32_t partition)
{
    for (size_t i = 0; i < image->n_buckets; i++) {
        struct image_row **at = &image->buckets[i];
        while (*at != NULL) {
            struct image_row *row = *at;
            if (row->partition == partition) {
                *at = row->next;
                row_free(image, row);
            } else {
                at = &row->next;
            }
        }
    }
}

void image_each(const struct image *image, void (*each)(void *arg, const struct image_row *row),
                void *arg)
{
    for (size_t i = 0; i < image->n_buckets; i++) {
        for (const struct image_row *row = image->buckets[i]; row != NULL; row = row->next) {
            if (row->run != NULL) {
                each(arg, row);
            }
        }
    }
}
