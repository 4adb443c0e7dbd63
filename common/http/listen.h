/*
 * The listener of `http.listen`: metrics and health of this process (README.md).
 * Thread: any; it has one of its own, which takes no signal.
 */
#ifndef BATON_COMMON_HTTP_LISTEN_H
#define BATON_COMMON_HTTP_LISTEN_H

#include "baton/code.h"

struct http_listener;

/*
 * Begins to answer on ADDRESS:PORT (port 0: one that is free). Logs where, and that others can read it
 * when the address is not of this host alone.
 * Errors: bad_config (no such address, or another process has it), no_memory, unexpected.
 */
baton_code http_listen(const char *listen, struct http_listener **ret_listener,
                       struct baton_error *err);
/* Ends it, and what it is answering. NULL is none. */
void http_close(struct http_listener *listener);

#endif
