/*
 * Contracts: broken ones stop the program, in release builds too.
 *
 * Operating errors are returned; a violated contract is our bug, and going on would spread it.
 */
#ifndef BATON_BASE_CHECK_H
#define BATON_BASE_CHECK_H

/* Prints the broken contract with its place and aborts. */
_Noreturn void check_failed(const char *kind, const char *text, const char *file, int line);

#define BATON_PRE(x) ((x) ? (void)0 : check_failed("precondition", #x, __FILE__, __LINE__))
#define BATON_POST(x) ((x) ? (void)0 : check_failed("postcondition", #x, __FILE__, __LINE__))
#define BATON_INVARIANT(x) ((x) ? (void)0 : check_failed("invariant", #x, __FILE__, __LINE__))

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#endif
