/*
 * A parallel loop over records to be judged or signed.
 * In: common/engine/intake.c (judges), worker/tell.c (signs)  Out: the function that they give
 */
#include "common/engine/verify.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define THREADS_MAX 8
#define ALONE_MAX 2 /* so few are done here: waking a thread takes longer */

struct verify {
    pthread_t threads[THREADS_MAX];
    int n_threads;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_cond_t done;
    unsigned long round; /* raised for each loop */
    int busy;            /* helpers that have not finished the present loop */
    bool stop;

    atomic_size_t next;
    size_t count;
    verify_fn fn;
    void *arg;
};

static void work(struct verify *verify, size_t count, verify_fn fn, void *arg)
{
    for (;;) {
        size_t i = atomic_fetch_add(&verify->next, 1);
        if (i >= count) {
            return;
        }
        fn(arg, i);
    }
}

static void *helper(void *arg)
{
    struct verify *verify = arg;
    unsigned long seen = 0;

    pthread_mutex_lock(&verify->lock);
    for (;;) {
        while (!verify->stop && verify->round == seen) {
            pthread_cond_wait(&verify->wake, &verify->lock);
        }
        if (verify->stop) {
            break;
        }
        seen = verify->round;
        size_t count = verify->count;
        verify_fn fn = verify->fn;
        void *fn_arg = verify->arg;
        pthread_mutex_unlock(&verify->lock);
        work(verify, count, fn, fn_arg);
        pthread_mutex_lock(&verify->lock);
        if (--verify->busy == 0) {
            pthread_cond_signal(&verify->done);
        }
    }
    pthread_mutex_unlock(&verify->lock);
    return NULL;
}

struct verify *verify_new(int n_threads)
{
    struct verify *verify = calloc(1, sizeof(*verify));
    if (verify == NULL) {
        return NULL;
    }
    pthread_mutex_init(&verify->lock, NULL);
    pthread_cond_init(&verify->wake, NULL);
    pthread_cond_init(&verify->done, NULL);
    for (int i = 0; i < n_threads && i < THREADS_MAX; i++) {
        if (pthread_create(&verify->threads[i], NULL, helper, verify) != 0) {
            verify_free(verify);
            return NULL;
        }
        verify->n_threads++;
        pthread_setname_np(verify->threads[i], "verify");
    }
    return verify;
}

void verify_free(struct verify *verify)
{
    if (verify == NULL) {
        return;
    }
    pthread_mutex_lock(&verify->lock);
    verify->stop = true;
    pthread_cond_broadcast(&verify->wake);
    pthread_mutex_unlock(&verify->lock);
    for (int i = 0; i < verify->n_threads; i++) {
        pthread_join(verify->threads[i], NULL);
    }
    pthread_cond_destroy(&verify->done);
    pthread_cond_destroy(&verify->wake);
    pthread_mutex_destroy(&verify->lock);
    free(verify);
}

bool verify_helped(const struct verify *verify)
{
    return verify->n_threads > 0;
}

bool verify_begin(struct verify *verify, size_t count, verify_fn fn, void *arg)
{
    if (verify->n_threads == 0) {
        return false;
    }
    pthread_mutex_lock(&verify->lock);
    atomic_store(&verify->next, 0);
    verify->count = count;
    verify->fn = fn;
    verify->arg = arg;
    verify->busy = verify->n_threads;
    verify->round++;
    pthread_cond_broadcast(&verify->wake);
    pthread_mutex_unlock(&verify->lock);
    return true;
}

void verify_end(struct verify *verify)
{
    work(verify, verify->count, verify->fn, verify->arg);
    pthread_mutex_lock(&verify->lock);
    while (verify->busy > 0) {
        pthread_cond_wait(&verify->done, &verify->lock);
    }
    pthread_mutex_unlock(&verify->lock);
}

void verify_run(struct verify *verify, size_t count, verify_fn fn, void *arg)
{
    if (count > ALONE_MAX && verify_begin(verify, count, fn, arg)) {
        verify_end(verify);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        fn(arg, i);
    }
}
