/*
 * What SIGHUP reads again (reload.c).
 *
 * Included by worker.c and round.c. Engine's thread.
 */
#ifndef BATON_WORKER_RELOAD_H
#define BATON_WORKER_RELOAD_H

struct reloaded;
struct worker;

/* Reads configuration, profiles and key again, if that was asked for. When nothing is decided that the log
 * has not taken, and no claim waits for its start. */
void worker_reload_due(struct worker *w);
void reloaded_free(struct reloaded *reloaded);

#endif
