/*
 * Agent programs that executors of kind agent run: one row for each, and one file worker/agent/<word>.c.
 * AGENT(word)
 */
#ifndef BATON_BASE_TBL_AGENTS_H
#define BATON_BASE_TBL_AGENTS_H

#define AGENTS(AGENT)                                                                              \
    AGENT(claude)                                                                                  \
    AGENT(codex)                                                                                   \
    AGENT(gemini)

/* All words with single spaces between. */
#define AGENT_SPACED(word) " " #word
#define AGENT_LIST AGENTS(AGENT_SPACED) /* the same, and a space before */
#define AGENT_WORDS (&(AGENT_LIST)[1])

#endif
