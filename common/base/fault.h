/*
 * Fault points: named places where a test kills, stops or fails the program.
 *
 *   FAULT_POINT(store_after_commit);
 *   if (FAULT_FAILS(log_before_commit)) { return baton_fail(...); }
 *
 * The names are the list tbl/fault_points.h; a wrong one does not compile. Without BATON_FAULTS
 * they are nothing and the variable is not read. With it, BATON_FAULT=name:action[:n] acts at the
 * n-th passing (default 1): kill (SIGKILL to itself), stop (SIGSTOP), fail (FAULT_FAILS is true,
 * once). Several stand side by side with commas. A name or action that is not known ends the
 * program. Any thread.
 */
#ifndef BATON_BASE_FAULT_H
#define BATON_BASE_FAULT_H

#include "common/base/tbl/fault_points.h"

#include <stdbool.h>
#include <stddef.h>

#define FAULT_ENUM(id, name, description) FAULT_##id,
enum fault { FAULT_POINTS(FAULT_ENUM) FAULT_COUNT };
#undef FAULT_ENUM

#ifdef BATON_FAULTS
#define FAULT_POINT(id) ((void)fault_pass(FAULT_##id))
#define FAULT_FAILS(id) fault_pass(FAULT_##id)
/* Passes a point: acts if the variable says so; true: the caller is to fail here. */
bool fault_pass(enum fault point);
#else
#define FAULT_POINT(id) ((void)FAULT_##id)
#define FAULT_FAILS(id) ((void)FAULT_##id, false)
#endif

/* The name of a point, for the list that tests enumerate. */
const char *fault_name(enum fault point);
/* Reads the variable, once: a program calls it first, so that a mistake ends it before its work. */
void fault_begin(void);
#ifdef BATON_FAULTS
/* The same from a text, for tests; a mistake is described in ret_text and answered false. */
bool fault_set(const char *spec, char *ret_text, size_t ret_text_size);
#endif

#endif
