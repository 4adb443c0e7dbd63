/*
 * Agent programs (claude, codex, gemini) behind one interface: what each is started with, and what the
 * things that it prints mean. One file for each program, one row in common/base/tbl/agents.h.
 *
 * Nothing here starts, waits or writes: the executor pool does (worker/executor/run_agent.c). What an
 * adapter makes of an end is the object that a program of kind exec writes on descriptor 3, so a
 * verdict and a failure have one meaning for all kinds (worker/executor/result.h).
 *
 * Ownership: requests are borrowed; a setup and a reading own what they hold (…_done). One thread each.
 */
#ifndef BATON_WORKER_AGENT_AGENT_H
#define BATON_WORKER_AGENT_AGENT_H

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/failure.h"
#include "common/base/role.h"
#include "common/record/usage.h"
#include "worker/agent/loose.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mask;

#define AGENT_TEXT_MAX (64 * 1024) /* kept of the newest message: a verdict is far smaller */
#define AGENT_MESSAGE_MAX 4096     /* kept of an error's message */
#define AGENT_NAME_MAX 128         /* a model's, session's or tool's name */
#define AGENT_SCHEMA_FILE "verdict.schema.json" /* in the scratch directory */

/* ---- what a program is started with ---- */

/* Texts in order; out of memory shows in broken. */
struct agent_words {
    char **list;
    size_t count;
    size_t cap;
    bool broken;
};
void agent_words_add(struct agent_words *words, const char *format, ...) BATON_PRINTF(2, 3);
void agent_words_add_all(struct agent_words *words, const char *const *list, size_t count);
/* An option and its value, as two words; value NULL: neither. */
void agent_words_option(struct agent_words *words, const char *option, const char *value);
void agent_words_done(struct agent_words *words);

/* What the agent may do to its place; each adapter knows the program's own words. */
enum agent_access {
    AGENT_ACCESS_read,  /* look only */
    AGENT_ACCESS_write, /* change files of the place */
    AGENT_ACCESS_full,  /* whatever it wants: for places that are sealed off otherwise */
};

struct agent_request {
    enum agent_access access;
    const char *model;       /* NULL: the program's own */
    const char *schema;      /* of the verdict, as JSON; it lies in AGENT_SCHEMA_FILE, too */
    const char *scratch;     /* absolute directory of the attempt */
    const char *place;       /* the working directory, without links; NULL: scratch */
    int64_t max_cost_micros; /* 0: no bound */
    bool keep_session;       /* for another attempt */
    const char *session;     /* go on in this one; NULL: begin anew */
    const char *home; /* somebody's, in which nothing is written; NULL: the scratch directory */
    const char *(*declared)(const void *arg, const char *name); /* a declared variable, or NULL */
    bool (*secret)(const void *arg, const char *name); /* is its value one? NULL: none is */
    const void *declared_arg;
};

struct agent_setup {
    struct agent_words argv;  /* behind the program's name; never the prompt, never a secret */
    struct agent_words env;   /* NAME=VALUE; declared variables win */
    struct agent_words files; /* path below the scratch directory, content, path, content… */
    const char *refused;      /* why it cannot be started, static; NULL: it can */
};
void agent_setup_done(struct agent_setup *setup);

/* ---- what it prints ---- */

struct agent_reading {
    const struct agent_program *program;
    struct buf last;    /* the newest message of the agent, at most AGENT_TEXT_MAX */
    struct buf verdict; /* raw JSON object that the schema asked for, if there was one */
    struct buf message; /* of the newest error */
    int status;         /* HTTP status that the output names; 0: none */
    bool done;          /* the program has told its end */
    bool failed;        /* ... as a failure */
    bool twice;         /* ... more than once: which of them is it? */
    bool piece;         /* what the newest line said is no whole message: more of it may follow */
    struct usage usage; /* as far as the program told */
};

void agent_reading_init(struct agent_reading *reading, const struct agent_program *program);
void agent_reading_done(struct agent_reading *reading);
/*
 * Takes a line of standard output, masked. Appends to said what the agent says to people, to doing what
 * it is doing; both in valid UTF-8, at most AGENT_TEXT_MAX, and decoded: a secret may show there that the
 * line did not. A line that is no JSON object is passed over.
 */
void agent_line(struct agent_reading *reading, const char *line, size_t len, struct buf *said,
                struct buf *doing);

/* How the program ended. */
struct agent_end {
    bool signaled;
    int value;         /* exit status, or the signal */
    const char *error; /* last line of standard error, masked; NULL: none */
    size_t error_len;
    struct wall_ms now; /* some programs name the time of a reset */
    /* Secrets that only show in what was decoded; NULL: none. */
    void (*mask)(const struct mask *mask, const void *bytes, size_t len, struct buf *out);
    const struct mask *mask_arg;
};

enum agent_source {
    AGENT_SOURCE_none,   /* there is no verdict */
    AGENT_SOURCE_schema, /* asked for by a schema */
    AGENT_SOURCE_text,   /* found at the end of the text: the weaker kind */
};

/*
 * What came of it: appends the object of kind exec (verdict, or class) for a turn of this role; nothing
 * if how it ended is all there is to say. Whether the verdict is one of the role is judged behind it.
 */
enum agent_source agent_judge(const struct agent_reading *reading, const struct agent_end *end,
                              struct buf *object);
/* What the attempt took, with the program's name and where the verdict came from. */
struct usage agent_usage(const struct agent_reading *reading, enum agent_source source);

/* Does this line of standard error (len 0: none), or the error that was told, say that the session is
 * gone? */
bool agent_session_gone(const struct agent_reading *reading, const char *line, size_t len);
/* Can a session's name stand in argv? */
bool agent_session_valid(const char *session);

/* ---- verdict.c ---- */

/* The JSON schema of a verdict, whose enumeration is exactly these. */
void agent_schema(verdict_set verdicts, struct buf *out);
/* The one JSON object at the end of a text (a code fence may close it) that has a verdict. */
bool agent_verdict_at_end(const char *text, size_t len, struct loose *ret_object);

/* ---- class.c ---- */

/* The class of an error: by the table of class_table.h. False: its words are not known. */
bool agent_class(const struct agent_program *program, int status, const char *message, size_t len,
                 enum failure *ret_class);
/* Do these words, in lower case, stand in the text? */
bool agent_has_words(const char *text, size_t len, const char *words);
/* An HTTP status that the text of an error names (4xx, 5xx), else 0. */
int agent_status_in(const char *text, size_t len);
/* How long the text asks to wait, in ms, at most a week; 0: it does not say. */
int64_t agent_retry_after_ms(const char *text, size_t len, struct wall_ms now);

/* ---- the programs ---- */

/* Exit statuses of a program that mean something by themselves. */
struct agent_exit {
    int status;
    enum failure class;
    const char *text;
};

struct agent_program {
    const char *word;
    const char *command;     /* the program's usual name */
    const char *credentials; /* variables that hold its credentials, with single spaces */
    const char *login;       /* file below its HOME in which it keeps that it has signed in */
    bool schema;             /* can be asked for a structured verdict */
    bool cumulative;         /* its numbers are those of the whole session */
    const char *gone;        /* words of an error, in lower case: the session is not there */
    void (*setup)(const struct agent_request *request, struct agent_setup *setup);
    void (*event)(struct agent_reading *reading, struct loose event, struct buf *said,
                  struct buf *doing);
    const struct agent_exit *exits; /* ends with status 0; NULL: none */
};

const struct agent_program *agent_find(const char *word);

/* For the adapters: takes over a text, cut, in plain characters; a number if it is one. */
void agent_take_name(struct loose value, char name[AGENT_NAME_MAX + 1]);
void agent_take_number(struct loose value, int64_t scale, int64_t *number);
/* Replaces what buf holds. */
void agent_take_text(struct loose value, size_t max, struct buf *buf);
/* An error, with the status that its text names unless one is known. */
void agent_take_error(struct agent_reading *reading, struct loose message);

#endif
