/*
 * Fixed maxima that several parts keep, each with its reason. Lengths in bytes. A part that gives one
 * a name of its own (LOG_HEADERS_MAX) takes the number from here.
 *
 * Ids have theirs in id.h (ID_MAX, SERVICE_MAX, KEY_MAX), beside their grammar; what only one part
 * knows stands in its header.
 */
#ifndef BATON_BASE_LIMITS_H
#define BATON_BASE_LIMITS_H

/* Records (common/record/RECORD.md). */
#define LIMIT_VALUE (256 * 1024)          /* a handoff: a task and its references, not its files */
#define LIMIT_REQUEST (240 * 1024)        /* what it holds fits a turn, beside what that adds */
#define LIMIT_HANDOFF_RECORD (512 * 1024) /* value, passes and headers; topics take no more */
#define LIMIT_RECORD (1024 * 1024)        /* others: a handoff fits, escaped, beside its history */
#define LIMIT_SUMMARY 4096                /* one screen: what a person reads in a list */
#define LIMIT_DATA_KEYS 32                /* flat facts; more belongs into a referenced file */
#define LIMIT_DATA_VALUE 4096
#define LIMIT_JSON_DEPTH 16    /* no record needs more; parsers and printers stay off deep stacks */
#define LIMIT_HEADERS 32       /* ours are below ten; tracing and Connect add some */
#define LIMIT_PASSES 8         /* a chain of services longer than this is a loop */
#define LIMIT_ATTEMPTS_KEPT 64 /* newest attempts in a turn-log record: as many as the budget */
#define LIMIT_HISTORY (8 * 1024) /* of earlier attempts, as it travels with a pass or dead letter */
#define LIMIT_NOTE 512           /* one line about an attempt's end */
#define LIMIT_REASON 1024        /* why an operator cancelled */
#define LIMIT_ITEMS 256          /* items, artifacts and targets of one result */

/* Executors (worker/EXECUTOR.md). */
#define LIMIT_RESULT (64 * 1024)        /* the JSON object on descriptor 3 */
#define LIMIT_OUTPUT (64 * 1024)        /* kept of standard output, masked; the rest is drained */
#define LIMIT_CHILD_FRAME (1024 * 1024) /* one line of a long-lived child: a result with escapes */
#define LIMIT_STDERR_LINE (8 * 1024)    /* one line into the log; longer ones are cut */
#define LIMIT_ARGV 64                   /* words of a command in the configuration */
#define LIMIT_ENV 64                    /* variables declared for an executor */

/* Configuration and files people write. */
#define LIMIT_YAML (1024 * 1024) /* a configuration is a page; a megabyte is a mistake */
#define LIMIT_YAML_DEPTH 16      /* ours needs six */
#define LIMIT_YAML_NODES 65536   /* memory of the tree stays below 10 MiB */
#define LIMIT_YAML_FINDINGS 100  /* mistakes told at once; more says nothing new */
#define LIMIT_SERVICES 256       /* services of a configuration */
#define LIMIT_CHAIN 16           /* services of a role's chain */
#define LIMIT_PROFILES                                                                             \
    16 /* credential profiles of a service: as many as a turn remembers having tried */
#define LIMIT_PARALLEL 1000 /* turns at a time for a worker: each is a process with three pipes */
#define LIMIT_PARTITIONS 64 /* of a topic; each has a turn log that is restored on its own */
#define LIMIT_KEY_FILE (16 * 1024) /* a private key, a trust file; what is bigger is another file */
#define LIMIT_SECRET (64 * 1024)   /* the content of one secret's file */

/* What commands print. */
#define LIMIT_LIST 50       /* rows of a list unless --limit says otherwise; then `more` */
#define LIMIT_DIAG_TEXT 200 /* of foreign text in a log line */

#endif
