/* Closed words. Called by every parser of words: roles, states, classes, configuration keys. */
#include "common/base/word.h"

#include <string.h>

int word_find(const char *const *words, size_t count, const char *text, size_t text_len)
{
    for (size_t i = 0; i < count; i++) {
        if (strlen(words[i]) == text_len && memcmp(words[i], text, text_len) == 0) {
            return (int)i;
        }
    }
    return -1;
}

bool word_is(const char *word, const void *bytes, size_t len)
{
    return bytes != NULL && len == strlen(word) && memcmp(bytes, word, len) == 0;
}

bool word_in_list(const char *list, const char *word)
{
    size_t len = strlen(word);
    for (const char *at = list; *at != '\0';) {
        size_t n = strcspn(at, " ");
        if (n == len && memcmp(at, word, n) == 0) {
            return true;
        }
        at += n;
        at += strspn(at, " ");
    }
    return false;
}

/* Levenshtein distance of words of at most 47 characters, or 99. */
static unsigned distance(const char *a, const char *b)
{
    size_t a_len = strlen(a);
    size_t b_len = strlen(b);
    unsigned row[48];
    if (a_len >= 48 || b_len >= 48) {
        return 99;
    }
    for (size_t j = 0; j <= b_len; j++) {
        row[j] = (unsigned)j;
    }
    for (size_t i = 1; i <= a_len; i++) {
        unsigned corner = row[0];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b_len; j++) {
            unsigned change = corner + (a[i - 1] != b[j - 1] ? 1 : 0);
            unsigned best = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            corner = row[j];
            row[j] = change < best ? change : best;
        }
    }
    return row[b_len];
}

const char *word_nearest(const char *const *words, size_t count, const char *text)
{
    const char *best = NULL;
    unsigned best_distance = (unsigned)strlen(text) / 3 + 2;
    for (size_t i = 0; i < count; i++) {
        unsigned d = distance(words[i], text);
        if (d < best_distance) {
            best_distance = d;
            best = words[i];
        }
    }
    return best;
}
