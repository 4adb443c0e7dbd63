/* Closed words: finding one in a table or in a list of words with single spaces. Any thread. */
#ifndef BATON_BASE_WORD_H
#define BATON_BASE_WORD_H

#include <stdbool.h>
#include <stddef.h>

/* Index of the word that equals text exactly, or -1. text need not end with NUL. */
int word_find(const char *const *words, size_t count, const char *text, size_t text_len);
/* Are these bytes exactly the word? bytes may be NULL. */
bool word_is(const char *word, const void *bytes, size_t len);
/* Is word one of the words of list ("retry rotate park")? */
bool word_in_list(const char *list, const char *word);
/* The nearest of the words to text by edit distance, for "did you mean"; NULL if none is near. */
const char *word_nearest(const char *const *words, size_t count, const char *text);

#endif
