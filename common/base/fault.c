/* Fault points of test builds. Called at the named places by store, log, engine and executors. */
#include "common/base/fault.h"

#include "common/base/check.h"

static const char *const fault_names[] = {
#define FAULT_NAME(id, name, description) name,
    FAULT_POINTS(FAULT_NAME)
#undef FAULT_NAME
};

const char *fault_name(enum fault point)
{
    BATON_PRE((unsigned)point < FAULT_COUNT);
    return fault_names[point];
}

#ifdef BATON_FAULTS

#include "common/base/quantity.h"
#include "common/base/text.h"
#include "common/base/word.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FAULT_kill, FAULT_stop, FAULT_fail };
static const char *const fault_actions[] = {"kill", "stop", "fail"};

/* What the variable asks for; `left` counts down to the passing that acts, 0: nothing (any more).
 */
static struct {
    atomic_int action;
    atomic_llong left;
} armed[FAULT_COUNT];

static bool arm(const char *entry, size_t entry_len, char *ret_text, size_t ret_text_size)
{
    size_t name_len = 0;
    while (name_len < entry_len && entry[name_len] != ':') {
        name_len++;
    }
    int point = word_find(fault_names, COUNT_OF(fault_names), entry, name_len);
    if (point < 0) {
        char name[64];
        snprintf(name, sizeof(name), "%.*s", (int)name_len, entry);
        const char *near = word_nearest(fault_names, COUNT_OF(fault_names), name);
        snprintf(ret_text, ret_text_size, "no fault point '%s'%s%s%s",
                 text_quote(entry, name_len).s, near != NULL ? "; did you mean '" : "",
                 near != NULL ? near : "", near != NULL ? "'?" : "");
        return false;
    }
    const char *action = entry + name_len + 1;
    size_t rest = entry_len > name_len ? entry_len - name_len - 1 : 0;
    size_t action_len = 0;
    while (action_len < rest && action[action_len] != ':') {
        action_len++;
    }
    int what = word_find(fault_actions, COUNT_OF(fault_actions), action, action_len);
    int64_t n = 1;
    bool counted = action_len < rest;
    if (what < 0 ||
        (counted &&
         (!quantity_int_parse(action + action_len + 1, rest - action_len - 1, &n) || n < 1))) {
        snprintf(ret_text, ret_text_size,
                 "'%s' is not name:action[:n] with action kill, stop or fail and n from 1",
                 text_quote(entry, entry_len).s);
        return false;
    }
    atomic_store(&armed[point].action, what);
    atomic_store(&armed[point].left, n);
    return true;
}

bool fault_set(const char *spec, char *ret_text, size_t ret_text_size)
{
    for (int i = 0; i < FAULT_COUNT; i++) {
        atomic_store(&armed[i].left, 0);
    }
    for (const char *at = spec; at != NULL && *at != '\0';) {
        size_t n = strcspn(at, ",");
        if (!arm(at, n, ret_text, ret_text_size)) {
            return false;
        }
        at += n + (at[n] == ',' ? 1 : 0);
    }
    return true;
}

static void from_environment(void)
{
    char text[512];
    if (!fault_set(getenv("BATON_FAULT"), text, sizeof(text))) {
        fprintf(stderr, "baton: BATON_FAULT: %s\n", text);
        _exit(2);
    }
}

void fault_begin(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, from_environment);
}

bool fault_pass(enum fault point)
{
    fault_begin();
    if (atomic_load_explicit(&armed[point].left, memory_order_relaxed) <= 0 ||
        atomic_fetch_sub(&armed[point].left, 1) != 1) {
        return false;
    }
    int action = atomic_load(&armed[point].action);
    if (action == FAULT_kill) {
        kill(getpid(), SIGKILL);
    } else if (action == FAULT_stop) {
        kill(getpid(), SIGSTOP);
    }
    return action == FAULT_fail;
}

#else

void fault_begin(void)
{
}

#endif
