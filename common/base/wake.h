/*
 * Signals as bytes of a pipe that an event loop watches: SIGTERM and SIGINT say stop, SIGHUP says read
 * again. Called by programs that run until they are told to stop, first of all, so that a stop that
 * comes early is a clean one, too. Main thread, once.
 */
#ifndef BATON_BASE_WAKE_H
#define BATON_BASE_WAKE_H

#include <stdbool.h>

#define WAKE_STOP 's'   /* a clean stop */
#define WAKE_RELOAD 'r' /* read configuration, keys and trust again */

/* The pipe's reading end, not blocking; false: it cannot be made (errno). */
bool wake_open(int *ret_read);

#endif
