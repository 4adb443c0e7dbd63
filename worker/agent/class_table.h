/*
 * What the errors of agent programs mean: HTTP statuses and wordings, with where each was seen. The
 * first row that fits is the class; no row, no class: unknown words are never guessed to be a refused
 * credential.
 *
 * WORDING(program, status, words, class)
 *   program  any, or the one whose error it must be
 *   status   the HTTP status that the output names; 0: whatever it is
 *   words    must stand in the error's message, without regard to case; "": whatever it says
 *
 * Read by class.c only. Errors' messages are searched, never what an agent says.
 */
#ifndef BATON_WORKER_AGENT_CLASS_TABLE_H
#define BATON_WORKER_AGENT_CLASS_TABLE_H

/* clang-format off */
#define AGENT_WORDINGS(WORDING) \
    /* Bounds of its own, whatever else stands beside them. */ \
    WORDING(claude, 0, "error_max_budget_usd",            no_verdict)     /* 2.1: what is left of the turn's, not the provider's */ \
    WORDING(claude, 0, "error_max_turns",                 no_verdict)     /* 1 and 2: its own bound of steps */ \
    WORDING(claude, 0, "error_max_structured_output",     no_verdict)     /* 2.1: no answer fitted the schema */ \
    /* A status that means something else beside certain words. */ \
    WORDING(any,    400, "api_key_invalid",               auth)           /* gemini 0.61 */ \
    WORDING(any,    400, "api key not valid",             auth)           /* gemini, older */ \
    WORDING(any,    400, "api key expired",               auth)           /* gemini, older */ \
    WORDING(any,    400, "credit balance is too low",     quota)          /* claude 1 and 2 */ \
    WORDING(any,    400, "location is not supported",     access_denied)  /* gemini, by country */ \
    WORDING(any,    403, "usage limit",                   quota)          /* claude with a subscription */ \
    WORDING(any,    403, "oauth token has expired",       auth)           /* claude, older */ \
    WORDING(any,    403, "oauth token revoked",           auth)           /* claude, older */ \
    WORDING(any,    429, "usage limit",                   quota)          /* claude, codex with a subscription */ \
    WORDING(any,    429, "insufficient_quota",            quota)          /* codex with a key */ \
    WORDING(any,    429, "exceeded your current quota",   quota)          /* codex with a key; gemini */ \
    WORDING(any,    429, "daily quota",                   quota)          /* gemini with an account */ \
    WORDING(any,    404, "model",                         access_denied)  /* one that these credentials do not have */ \
    /* Statuses by themselves. */ \
    WORDING(any,    400, "", bad_request) \
    WORDING(any,    401, "", auth) \
    WORDING(any,    402, "", quota) \
    WORDING(any,    403, "", access_denied) \
    WORDING(any,    404, "", bad_request) \
    WORDING(any,    408, "", unavailable) \
    WORDING(any,    413, "", bad_request) \
    WORDING(any,    422, "", bad_request) \
    WORDING(any,    429, "", rate_limited) \
    WORDING(any,    500, "", unavailable) \
    WORDING(any,    502, "", unavailable) \
    WORDING(any,    503, "", overloaded) \
    WORDING(any,    504, "", unavailable) \
    WORDING(any,    529, "", overloaded) \
    /* Words without a status that is known. */ \
    WORDING(claude, 0, "invalid api key",                 auth)           /* 1 and 2, before the first request */ \
    WORDING(claude, 0, "please run /login",               auth)           /* 1 and 2, without credentials */ \
    WORDING(claude, 0, "not logged in",                   auth)           /* 2 */ \
    WORDING(claude, 0, "oauth token has expired",         auth)           /* 1 and 2 */ \
    WORDING(claude, 0, "oauth token revoked",             auth)           /* 1 and 2 */ \
    WORDING(claude, 0, "failed to authenticate",          auth)           /* older ones, without a status */ \
    WORDING(claude, 0, "credit balance is too low",       quota)          /* 1 and 2 */ \
    WORDING(claude, 0, "usage limit reached",             quota)          /* 1: with |<time of the reset> */ \
    WORDING(claude, 0, "hour limit reached",              quota)          /* 1 and 2: 5-hour, with a reset */ \
    WORDING(claude, 0, "weekly limit reached",            quota)          /* 2 */ \
    WORDING(claude, 0, "session limit",                   quota)          /* 2 */ \
    WORDING(claude, 0, "hit your limit",                  quota)          /* 2 */ \
    WORDING(claude, 0, "prompt is too long",              bad_request)    /* 1 and 2 */ \
    WORDING(claude, 0, "issue with the selected model",   access_denied)  /* 2 */ \
    WORDING(claude, 0, "usage policy",                    policy)         /* 1 and 2 */ \
    WORDING(claude, 0, "connection error",                unavailable)    /* 1 and 2 */ \
    WORDING(claude, 0, "unable to connect",               unavailable)    /* 2 */ \
    WORDING(claude, 0, "request timed out",               unavailable)    /* 1 and 2 */ \
    WORDING(claude, 0, "empty or malformed response",     unavailable)    /* 2.1.197: a stream that broke off */ \
    WORDING(claude, 0, "failed to parse json",            unavailable)    /* 2.1.197: an answer that is no JSON */ \
    WORDING(claude, 0, "overloaded",                      overloaded)     /* 1 */ \
    WORDING(codex,  0, "usage limit",                     quota)          /* with a subscription */ \
    WORDING(codex,  0, "quota exceeded",                  quota)          /* with a key */ \
    WORDING(codex,  0, "insufficient_quota",              quota)          /* with a key */ \
    WORDING(codex,  0, "not logged in",                   auth)           /* without credentials */ \
    WORDING(codex,  0, "access token could not be refreshed", auth)       /* an account that was signed out */ \
    WORDING(codex,  0, "missing environment variable",    auth)           /* its env_key is not set */ \
    WORDING(codex,  0, "rate limit reached",              rate_limited)   /* with a key, in a stream */ \
    WORDING(codex,  0, "at capacity",                     overloaded)     /* 0.171: 503 */ \
    WORDING(codex,  0, "experiencing high demand",        overloaded)     /* 0.171: 500 */ \
    WORDING(codex,  0, "stream disconnected",             unavailable)    /* 0.171: a stream that broke off, junk */ \
    WORDING(codex,  0, "error sending request",           unavailable)    /* nobody answers */ \
    WORDING(codex,  0, "connection failed",               unavailable)    /* nobody answers */ \
    WORDING(codex,  0, "invalid_prompt",                  policy)         /* flagged by the provider */ \
    WORDING(codex,  0, "context window",                  bad_request)    /* the prompt is too long */ \
    WORDING(codex,  0, "model is not supported",          access_denied)  /* with a subscription */ \
    WORDING(codex,  0, "invalid_request_error",           bad_request)    /* 0.171: the body of a 400 */ \
    WORDING(gemini, 0, "api_key_invalid",                 auth)           /* 0.61 */ \
    WORDING(gemini, 0, "api key not valid",               auth)           /* older */ \
    WORDING(gemini, 0, "invalid auth method",             auth)           /* 0.61: unusable set-up */ \
    WORDING(gemini, 0, "please set an auth method",       auth)           /* 0.61: unusable set-up */ \
    WORDING(gemini, 0, "resource_exhausted",              rate_limited)   /* older */ \
    WORDING(gemini, 0, "quota exceeded",                  quota)          /* older */ \
    WORDING(gemini, 0, "model is overloaded",             overloaded)     /* older */ \
    WORDING(gemini, 0, "incomplete json segment",         unavailable)    /* 0.61: a stream that broke off, junk */ \
    WORDING(gemini, 0, "fetch failed",                    unavailable)    /* nobody answers */ \
    WORDING(gemini, 0, "prohibited_content",              policy)         /* blocked by the provider */ \
    WORDING(gemini, 0, "input token count",               bad_request)    /* the prompt is too long */ \
    WORDING(any,    0, "econnrefused",                    unavailable) \
    WORDING(any,    0, "econnreset",                      unavailable) \
    WORDING(any,    0, "enotfound",                       unavailable) \
    WORDING(any,    0, "etimedout",                       unavailable)
/* clang-format on */

#endif
