/*
 * What is said of a turn that stands, before it is printed: why.c finds it, why_print.c prints it, and
 * nobody else includes this. Texts belong to the struct. Main thread.
 */
#ifndef BATON_PRODUCER_WHY_SAID_H
#define BATON_PRODUCER_WHY_SAID_H

#include "common/base/clock.h"
#include "producer/why.h"

#include <stddef.h>

enum who {
#define WHO_ENUM(word, text) WHO_##word,
    WHY_WHO(WHO_ENUM)
#undef WHO_ENUM
};

struct step {
    char *text;    /* what; a command's effect */
    char *command; /* of a command, else NULL */
    struct wall_ms at;
};

struct steps {
    struct step *list;
    size_t count;
    size_t cap;
};

struct why {
    struct steps happened;
    struct steps now;
    struct steps commands;
    enum who who;
    struct wall_ms next_at; /* 0: nothing has a time */
};

/* What there is to say; without memory the program ends. */
struct why why_look_at(const struct why_sources *from);
void why_done(struct why *why);

#endif
