/*
 * C11 threads by POSIX threads, for builds under the thread sanitizer: it knows nothing of those of
 * the C library, which librdkafka uses, and ends at the first one. Linked into every program of such
 * a build (common/log/CMakeLists.txt), where it takes the C library's place.
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <threads.h>

#define SEEN __attribute__((visibility("default")))

_Static_assert(sizeof(mtx_t) == sizeof(pthread_mutex_t), "glibc's own are the same");
_Static_assert(sizeof(cnd_t) == sizeof(pthread_cond_t), "glibc's own are the same");

struct start {
    thrd_start_t run;
    void *arg;
};

static int result_of(int error)
{
    return error == 0           ? thrd_success
           : error == EBUSY     ? thrd_busy
           : error == ETIMEDOUT ? thrd_timedout
           : error == ENOMEM    ? thrd_nomem
                                : thrd_error;
}

static void *run(void *arg)
{
    struct start start = *(struct start *)arg;
    free(arg);
    return (void *)(intptr_t)start.run(start.arg);
}

SEEN int thrd_create(thrd_t *thread, thrd_start_t function, void *arg)
{
    struct start *start = malloc(sizeof(*start));
    if (start == NULL) {
        return thrd_nomem;
    }
    *start = (struct start){function, arg};
    int error = pthread_create(thread, NULL, run, start);
    if (error != 0) {
        free(start);
    }
    return result_of(error);
}

SEEN int thrd_join(thrd_t thread, int *ret_result)
{
    void *result = NULL;
    int error = pthread_join(thread, &result);
    if (error == 0 && ret_result != NULL) {
        *ret_result = (int)(intptr_t)result;
    }
    return result_of(error);
}

SEEN int thrd_detach(thrd_t thread)
{
    return result_of(pthread_detach(thread));
}

SEEN int mtx_init(mtx_t *mutex, int type)
{
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    if ((type & mtx_recursive) != 0) {
        pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
    }
    int error = pthread_mutex_init((pthread_mutex_t *)mutex, &attr);
    pthread_mutexattr_destroy(&attr);
    return result_of(error);
}

SEEN int mtx_lock(mtx_t *mutex)
{
    return result_of(pthread_mutex_lock((pthread_mutex_t *)mutex));
}

SEEN int mtx_trylock(mtx_t *mutex)
{
    return result_of(pthread_mutex_trylock((pthread_mutex_t *)mutex));
}

SEEN int mtx_unlock(mtx_t *mutex)
{
    return result_of(pthread_mutex_unlock((pthread_mutex_t *)mutex));
}

/* Locked once more: librdkafka orders its last use and this by counts that the sanitizer does not see. */
SEEN void mtx_destroy(mtx_t *mutex)
{
    if (pthread_mutex_trylock((pthread_mutex_t *)mutex) == 0) {
        pthread_mutex_unlock((pthread_mutex_t *)mutex);
    }
    pthread_mutex_destroy((pthread_mutex_t *)mutex);
}

SEEN int cnd_init(cnd_t *cond)
{
    return result_of(pthread_cond_init((pthread_cond_t *)cond, NULL));
}

SEEN int cnd_signal(cnd_t *cond)
{
    return result_of(pthread_cond_signal((pthread_cond_t *)cond));
}

SEEN int cnd_broadcast(cnd_t *cond)
{
    return result_of(pthread_cond_broadcast((pthread_cond_t *)cond));
}

SEEN int cnd_wait(cnd_t *cond, mtx_t *mutex)
{
    return result_of(pthread_cond_wait((pthread_cond_t *)cond, (pthread_mutex_t *)mutex));
}

SEEN int cnd_timedwait(cnd_t *cond, mtx_t *mutex, const struct timespec *until)
{
    return result_of(
        pthread_cond_timedwait((pthread_cond_t *)cond, (pthread_mutex_t *)mutex, until));
}

SEEN void cnd_destroy(cnd_t *cond)
{
    pthread_cond_destroy((pthread_cond_t *)cond);
}
