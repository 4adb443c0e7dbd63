/*
 * Agent programs that executors of kind agent run: one row for each, and one file worker/agent/<word>.c.
 * AGENT(word, tells_costs): does it tell what an attempt has cost?
 */
#ifndef BATON_BASE_TBL_AGENTS_H
#define BATON_BASE_TBL_AGENTS_H

#define AGENTS(AGENT)                                                                              \
    AGENT(claude, true)                                                                            \
    AGENT(codex, false)                                                                            \
    AGENT(gemini, false)

/* All words with single spaces between. */
#define AGENT_SPACED(word, tells_costs) " " #word
#define AGENT_LIST AGENTS(AGENT_SPACED) /* the same, and a space before */
#define AGENT_WORDS (&(AGENT_LIST)[1])

#endif
